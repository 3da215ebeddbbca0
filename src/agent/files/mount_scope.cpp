#include "agent/files/mount_scope.hpp"

#include "base/log.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sched.h>

namespace opensandbox::agent {

MountScope::MountScope(int mounts) {
    status_ = enter(mounts);
}

Status MountScope::enter(int mounts) {
    // Root and working directory of this thread become its own, for as long as it lives.
    if (::unshare(CLONE_FS) != 0) return Error::from_errno(errno, "leave the shared directory");
    root_.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    directory_.reset(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    UniqueFd home(::open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC));
    if (!root_ || !directory_ || !home) return Error::from_errno(errno, "remember the mounts");
    if (::setns(mounts, CLONE_NEWNS) != 0) {
        return Error::from_errno(errno, "enter the mounts of the session");
    }
    home_ = std::move(home);
    return {};
}

MountScope::~MountScope() {
    if (!home_) return;
    if (::setns(home_.get(), CLONE_NEWNS) == 0 && ::fchdir(root_.get()) == 0 &&
        ::chroot(".") == 0 && ::fchdir(directory_.get()) == 0) {
        return;
    }
    // The next piece of work on this thread would take the session's files for the sandbox's.
    log::error("a thread cannot return from a session's mounts", {{"error", errno}});
    std::abort();
}

}  // namespace opensandbox::agent
