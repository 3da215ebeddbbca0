#include "runtime/native/confinement/capabilities.hpp"
#include "runtime/native/confinement/seccomp_filter.hpp"
#include "runtime/native/kernel/kernel.hpp"
#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>
#include <linux/netlink.h>
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
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace {

/// Runs the checks in a child; returns the number of the first that failed, 0 for none.
int in_child(const std::function<int()>& checks) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(checks());
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int errno_of(long result) {
    return result < 0 ? errno : 0;
}

}  // namespace

TEST_CASE("the filter refuses what reaches the kernel or the host", "[runtime][seccomp]") {
    auto filter = compile_seccomp_filter();
    REQUIRE(succeeded(filter));
    CHECK(filter->size() < 4096);
    const int failed = in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!install_seccomp_filter(*filter)) return 1;
        if (errno_of(::mount("x", "/tmp", "tmpfs", 0, "")) != EPERM) return 2;
        if (errno_of(::unshare(CLONE_NEWUSER)) != EPERM) return 3;
        if (errno_of(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)) != EPERM) return 4;
        if (errno_of(::syscall(SYS_clone3, nullptr, 0)) != ENOSYS) return 5;
        if (errno_of(::socket(AF_INET, SOCK_RAW, 1)) != EPERM) return 6;
        if (errno_of(::socket(AF_PACKET, SOCK_RAW, 0)) != EPERM) return 7;
        if (errno_of(::socket(AF_VSOCK, SOCK_STREAM, 0)) != EPERM) return 8;
        if (errno_of(::socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)) != EPERM) return 9;
        if (errno_of(::syscall(SYS_bpf, 0, nullptr, 0)) != EPERM) return 10;
        if (errno_of(::syscall(SYS_keyctl, 0, 0, 0, 0, 0)) != EPERM) return 11;
        if (errno_of(::syscall(SYS_io_uring_setup, 1, nullptr)) != EPERM) return 12;
        if (errno_of(::syscall(SYS_init_module, nullptr, 0, "")) != EPERM) return 13;
        if (errno_of(::syscall(SYS_open_by_handle_at, 0, nullptr, 0)) != EPERM) return 14;
        if (errno_of(::syscall(SYS_userfaultfd, 0)) != EPERM) return 15;
        if (errno_of(::syscall(SYS_reboot, 0, 0, 0, 0)) != EPERM) return 16;
        if (errno_of(::syscall(SYS_pivot_root, ".", ".")) != EPERM) return 17;
        if (errno_of(::syscall(SYS_setns, -1, 0)) != EPERM) return 18;
        if (errno_of(::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0)) != EPERM) return 19;
        // Newer than all that is known, and the x32 ABI's numbers.
        if (errno_of(::syscall(100'000)) != ENOSYS) return 20;
        if (errno_of(::syscall(0x4000'0000 | 39)) != ENOSYS) return 21;
        return 0;
    });
    CHECK(failed == 0);
}

TEST_CASE("the filter lets ordinary programs work", "[runtime][seccomp]") {
    auto filter = compile_seccomp_filter();
    REQUIRE(succeeded(filter));
    const int failed = in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!install_seccomp_filter(*filter)) return 1;
        for (const int type : {int{SOCK_STREAM}, int{SOCK_DGRAM}, SOCK_STREAM | SOCK_CLOEXEC}) {
            for (const int family : {AF_INET, AF_UNIX}) {
                if (::socket(family, type, 0) < 0) return 2;
            }
        }
        if (::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) < 0) return 3;
        const pid_t pid = ::fork();
        if (pid < 0) return 4;
        if (pid == 0) {
            ::execl("/bin/sh", "sh", "-c", "test \"$(echo a | cat)\" = a", nullptr);
            ::_exit(9);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        return status == 0 ? 0 : 5;
    });
    CHECK(failed == 0);
}

TEST_CASE("dropped capabilities stay dropped", "[runtime][capabilities]") {
    const int failed = in_child([] {
        if (!drop_capabilities(sandbox_capabilities())) return 1;
        for (const int capability : {12 /* NET_ADMIN */, 13 /* NET_RAW */, 21 /* SYS_ADMIN */,
                                     16 /* SYS_MODULE */, 19 /* SYS_PTRACE */, 27 /* MKNOD */}) {
            if (::prctl(PR_CAPBSET_READ, capability) != 0) return 2;
        }
        if (::prctl(PR_CAPBSET_READ, 0 /* CHOWN */) != 1) return 3;
        if (errno_of(::mount("x", "/tmp", "tmpfs", 0, "")) != EPERM) return 4;
        if (errno_of(::socket(AF_INET, SOCK_RAW, 1)) != EPERM) return 5;
        // A program started anew gets no more.
        const pid_t pid = ::fork();
        if (pid == 0) {
            ::execl("/bin/sh", "sh", "-c", "grep -q '^CapEff:.00000000800405fb' /proc/self/status",
                    nullptr);
            ::_exit(9);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        return status == 0 ? 0 : 6;
    });
    CHECK(failed == 0);
}
