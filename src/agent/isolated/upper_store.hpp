#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace opensandbox::agent {

/// The directory of one session below the upper root. Locked while its agent lives, removed with
/// this object; what a killed agent left is removed by the next one.
class SessionDirectory {
  public:
    /// Makes `root`/`id`, mode 0700. Blocks.
    static Result<SessionDirectory> create(const std::string& root, const std::string& id);
    SessionDirectory() = default;
    SessionDirectory(SessionDirectory&&) noexcept = default;
    SessionDirectory& operator=(SessionDirectory&&) noexcept = default;
    ~SessionDirectory();

    [[nodiscard]] const std::string& path() const { return path_; }
    /// Makes `name`/upper and `name`/work in it.
    [[nodiscard]] Status make_layers(const std::string& name) const;
    /// Removes it and all that is in it. Blocks.
    void remove();

  private:
    std::string path_;
    UniqueFd lock_;
};

/// Removes the directories of sessions whose agent is gone. Blocks.
void sweep_upper_root(const std::string& root);

/// Bytes on disk below a directory, links not followed; stops counting past `enough`. Blocks.
std::uint64_t disk_usage(const std::string& directory, std::uint64_t enough);

}  // namespace opensandbox::agent
