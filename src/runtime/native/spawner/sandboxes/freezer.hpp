#pragma once

#include "base/error.hpp"
#include "runtime/native/ground/confinement/cgroup.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace opensandbox::runtime::native {

/// Stops all processes of a pid namespace by SIGSTOP, where no cgroup freezer is to be had. What
/// they are told on the way out is SIGCONT, which a program can notice, and which lets run on also
/// what its user had stopped before.
class ProcessFreezer {
  public:
    /// `first` is process 1 of the namespace, as numbered outside of it.
    explicit ProcessFreezer(pid_t first) : first_(first) {}

    /// Signals whatever runs still; to be repeated until frozen(), since processes are forked
    /// meanwhile.
    [[nodiscard]] Status freeze() const;
    /// Lets them run again, children before their parents, so that no shell finds its child
    /// stopped.
    [[nodiscard]] Status thaw() const;
    [[nodiscard]] bool frozen() const;
    /// Process 1, which is stopped first and goes on last, stands still.
    [[nodiscard]] bool asked() const;

  private:
    pid_t first_;
};

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
