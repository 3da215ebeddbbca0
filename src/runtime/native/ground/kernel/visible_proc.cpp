#include "runtime/native/ground/kernel/visible_proc.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <sched.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

/// As a sandbox will.
Status try_mount() {
    auto child = clone_process(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, -1);
    if (!child) return child.error();
    if (child->pid == 0) {
        constexpr unsigned long kQuiet = MS_NOSUID | MS_NODEV | MS_NOEXEC;
        ::_exit(::mount("proc", "/proc", "proc", kQuiet, nullptr) == 0 ? 0 : errno);
    }
    int status = 0;
    if (::waitpid(child->pid, &status, __WALL) < 0) return last_error("wait for a process");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    const int number = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
    return Error::from_errno(number, "mount /proc in a user namespace");
}

}  // namespace

Status ensure_visible_proc(const std::filesystem::path& directory) {
    auto tried = try_mount();
    if (tried || tried.error().code() != ErrorCode::permission_denied) return tried;
    if (::mkdir(directory.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + directory.string());
    }
    if (::unshare(CLONE_NEWNS) < 0 || ::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) < 0) {
        return tried;
    }
    if (::mount("proc", directory.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) < 0) {
        return tried;
    }
    return try_mount();
}

}  // namespace opensandbox::runtime::native
