#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace opensandbox::agent {

/// Puts the calling thread, and it alone, into the mounts of a session while it exists: paths mean
/// what they mean to the session's processes, and its read-only mounts are read-only. Not for the
/// main thread.
class MountScope {
  public:
    /// `mounts` is a descriptor of a mount namespace.
    explicit MountScope(int mounts);
    MountScope(const MountScope&) = delete;
    MountScope& operator=(const MountScope&) = delete;
    ~MountScope();

    [[nodiscard]] const Status& status() const { return status_; }

  private:
    Status enter(int mounts);

    Status status_;
    UniqueFd home_;  ///< the mount namespace to return to
    UniqueFd root_;
    UniqueFd directory_;
};

}  // namespace opensandbox::agent
