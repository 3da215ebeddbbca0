#pragma once

#include "imagebuild/ignore.hpp"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace opensandbox::imagebuild {

enum class EntryKind : std::uint8_t { file, directory, link };

/// One file, directory or symbolic link of the context.
struct ContextEntry {
    EntryKind kind = EntryKind::file;
    std::uint32_t mode = 0;  ///< permission bits
    std::uint64_t size = 0;
    timespec modified{};
    std::string target;  ///< of a link
};

/// Entries by their path below the context, which itself is "" (a directory).
using ContextEntries = std::map<std::string, ContextEntry, std::less<>>;

/// The directory that COPY takes from, without what is ignored. Sockets, pipes and devices are left
/// out.
class Context {
  public:
    /// Walks the whole directory; blocks. `not_found`, `invalid_argument` when it is no directory;
    /// errors name the path.
    static Result<Context> open(const std::filesystem::path& directory, const IgnoreRules& rules);

    [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
    [[nodiscard]] const ContextEntries& entries() const { return entries_; }
    /// 64 hex digits of a file's content; read once, and again only when the file is another by
    /// then. Blocks.
    Result<std::string> digest_of(const std::string& path);

  private:
    std::filesystem::path directory_;
    ContextEntries entries_;
    std::map<std::string, std::string> digests_;
};

/// The text of a file; empty when there is none. `too_large` past `limit` bytes. Blocks.
Result<std::optional<std::string>> read_text_file(const std::filesystem::path& path,
                                                  std::size_t limit);

}  // namespace opensandbox::imagebuild
