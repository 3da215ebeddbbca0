#pragma once

#include "base/error.hpp"
#include "runtime/native/ground/confinement/cgroup.hpp"
#include "runtime/native/spawner/sandboxes/process_freezer.hpp"

#include <filesystem>
#include <string>

namespace opensandbox::runtime::native {

/// Stops all processes of a slot where they are. Of cgroup v2 where the host has it, since what is
/// stopped there can be killed; else the freezer of v1; else signals.
class Freezer {
  public:
    /// `first` is process 1 of the slot.
    Freezer(const CgroupTree& tree, const std::string& slot, pid_t first);

    /// Asks the kernel; frozen() says when it is done. To be repeated while it is not: v1 may miss
    /// a process that is being forked.
    [[nodiscard]] Status freeze() const;
    /// Succeeds also for what is not frozen.
    [[nodiscard]] Status thaw() const;
    /// Every process is stopped.
    [[nodiscard]] bool frozen() const;
    /// Somebody asked for it, whether or not every process is stopped yet.
    [[nodiscard]] bool asked() const;

  private:
    std::filesystem::path directory_;  ///< empty: no freezer here
    bool unified_ = false;
    ProcessFreezer processes_;
};

}  // namespace opensandbox::runtime::native
