#pragma once

#include "agent/isolated/config.hpp"
#include "agent/isolated/namespace_plan.hpp"
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

/// Where a persistent overlay of a session keeps what was written.
struct SessionOverlay {
    std::string path;   ///< of the overlay in the session, and of its lower outside
    UniqueFd lower;     ///< the directory outside, as it was found when the session began
    std::string upper;  ///< see `in_memory`
    std::string work;
    bool in_memory = false;  ///< `upper` is a path in the session's mounts, not in the agent's
    bool user_attributes = false;  ///< see needs_user_attributes()
    /// Changes of the lower after this time are someone else's (seconds and nanoseconds, ctime).
    timespec since{};
};

/// A session ready to be built.
struct Preparation {
    NamespacePlan plan;
    SessionDirectory directory;
    std::vector<SessionOverlay> overlays;  ///< the persistent ones
};

/// Looks at the file system, checks sources against the allow-list after links were resolved, and
/// makes directories for uppers. With `in_memory` those lie in the session's memory, for hosts
/// whose disk cannot hold them. `invalid_argument` names what is wrong with the request. Blocks.
Result<Preparation> prepare_session(const IsolatedSessionRequest& request,
                                    const IsolationConfig& config, const std::string& id,
                                    bool in_memory);

/// The time with which changes of inodes are compared: what changes in the same tick of the kernel
/// may seem older.
timespec current_time();

}  // namespace opensandbox::agent
