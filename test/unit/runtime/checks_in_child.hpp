#pragma once

#include <sys/wait.h>

#include <cerrno>
#include <functional>
#include <unistd.h>

/// For what a process can only do to itself and never take back.
namespace opensandbox::runtime::test {

/// Runs the checks in a child; returns the number of the first that failed, 0 for none.
inline int in_child(const std::function<int()>& checks) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(checks());
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline int errno_of(long result) {
    return result < 0 ? errno : 0;
}

}  // namespace opensandbox::runtime::test
