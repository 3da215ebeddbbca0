#pragma once

#include "base/error.hpp"

#include <sys/types.h>

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

}  // namespace opensandbox::runtime::native
