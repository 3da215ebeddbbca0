#pragma once

#include "base/error.hpp"
#include "net/ipv6_range.hpp"
#include "runtime/native/records/protocol.hpp"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// What is written down about a sandbox: enough for a new spawner to find it again.
struct JournalEntry {
    std::string id;
    SlotId slot;
    pid_t pid = 0;
    std::uint64_t start_time = 0;  ///< of that process: pids are used again
    std::uint16_t port = 0;
    bool paused = false;
    std::string boot;    ///< of the kernel it lived under; empty: not known
    std::string digest;  ///< of the image below it, which must stay
    /// None in entries of versions that had no IPv6.
    std::optional<net::Ipv6Address> address6;
    std::optional<Exit> exit;
};

std::string format_entry(const JournalEntry& entry);
/// invalid_argument when a line is malformed or one is missing. Messages come back on one line.
Result<JournalEntry> parse_entry(std::string_view text);

/// One small file a sandbox, replaced atomically. Not synced to disk: it need not outlive the
/// kernel, since sandboxes do not either. Files are used again, from a directory beside it: file
/// systems look long for a place in a directory where many have just been deleted.
class Journal {
  public:
    /// Makes the directories.
    static Result<Journal> open(std::filesystem::path directory);
    Status write(const JournalEntry& entry);
    void remove(const std::string& id);
    /// Every entry; files that are none are removed and logged.
    [[nodiscard]] Result<std::vector<JournalEntry>> read_all() const;

  private:
    Journal(std::filesystem::path directory, std::filesystem::path spares)
        : directory_(std::move(directory)), spares_(std::move(spares)) {}
    /// A file to write to that no entry is.
    std::filesystem::path take_spare();
    std::filesystem::path directory_;
    std::filesystem::path spares_;
    std::vector<std::filesystem::path> spare_files_;
    std::uint64_t last_spare_ = 0;
};

}  // namespace opensandbox::runtime::native
