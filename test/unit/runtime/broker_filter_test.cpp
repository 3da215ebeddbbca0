#include "runtime/native/ground/confinement/seccomp_filter.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "unit/runtime/checks_in_child.hpp"

#include <catch2/catch.hpp>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <sched.h>
#include <unistd.h>

using namespace opensandbox;
using opensandbox::runtime::test::errno_of;
using opensandbox::runtime::test::in_child;
using namespace opensandbox::runtime::native;

namespace {

int clone_with(unsigned long flags) {
    const long pid = ::syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) ::_exit(0);
    if (pid < 0) return errno;
    ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
    return 0;
}

}  // namespace

TEST_CASE("the filter of a broker lets it make sessions", "[runtime][seccomp]") {
    const auto filter = compile_broker_filter();
    const int failed = in_child([&] {
        if (::unshare(CLONE_NEWNS) != 0) return 1;
        if (::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 2;
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!install_seccomp_filter(filter)) return 3;
        if (::mount("x", "/tmp", "tmpfs", 0, "") != 0) return 4;
        if (::umount2("/tmp", MNT_DETACH) != 0) return 5;
        if (clone_with(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET) !=
            0)
            return 6;
        if (::unshare(CLONE_FS) != 0) return 7;
        if (errno_of(::setns(-1, 0)) != EBADF) return 8;
        return 0;
    });
    CHECK(failed == 0);
}

TEST_CASE("the filter of a broker refuses what sessions do not need", "[runtime][seccomp]") {
    const auto filter = compile_broker_filter();
    const int failed = in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!install_seccomp_filter(filter)) return 1;
        if (clone_with(CLONE_NEWUSER) != EPERM) return 2;
        if (clone_with(CLONE_NEWNS | CLONE_NEWUSER) != EPERM) return 3;
        if (clone_with(CLONE_NEWCGROUP) != EPERM) return 4;
        if (errno_of(::unshare(CLONE_NEWUSER)) != EPERM) return 5;
        if (errno_of(::unshare(CLONE_NEWNS)) != EPERM) return 6;
        if (errno_of(::syscall(SYS_clone3, nullptr, 0)) != ENOSYS) return 7;
        if (errno_of(::syscall(SYS_pivot_root, ".", ".")) != EPERM) return 8;
        if (errno_of(::syscall(SYS_bpf, 0, nullptr, 0)) != EPERM) return 9;
        if (errno_of(::syscall(SYS_keyctl, 0, 0, 0, 0, 0)) != ENOSYS) return 10;
        if (errno_of(::syscall(SYS_io_uring_setup, 1, nullptr)) != ENOSYS) return 11;
        if (errno_of(::syscall(SYS_init_module, nullptr, 0, "")) != EPERM) return 12;
        if (errno_of(::syscall(SYS_open_by_handle_at, 0, nullptr, 0)) != EPERM) return 13;
        if (errno_of(::syscall(SYS_userfaultfd, 0)) != EPERM) return 14;
        if (errno_of(::socket(AF_INET, SOCK_RAW, 1)) != EPERM) return 15;
        if (errno_of(::socket(AF_PACKET, SOCK_RAW, 0)) != EPERM) return 16;
        return 0;
    });
    CHECK(failed == 0);
}
