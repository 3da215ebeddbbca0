#pragma once

#include "runtime/native/records/protocol.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// What an enforcer has to be told of a sandbox that lives.
struct GuardRecord {
    std::string id;
    std::string link;
    std::vector<std::string> addresses;
    EgressTerms egress;
};

std::string format_guard(const GuardRecord& record);
/// invalid_argument names the member.
Result<GuardRecord> parse_guard(std::string_view text);

/// The guarded sandboxes of a spawner, a file each, for the one that comes after it. They hold
/// tokens: for this user alone.
class GuardRecords {
  public:
    explicit GuardRecords(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// Makes the directory when it is not there.
    Status write(const GuardRecord& record) const;
    void remove(const std::string& id) const;
    /// Every one; files that are none are removed and logged.
    [[nodiscard]] std::vector<GuardRecord> read_all() const;

  private:
    std::filesystem::path directory_;
};

}  // namespace opensandbox::runtime::native
