#include "runtime/native/ground/confinement/capabilities.hpp"
#include "runtime/native/ground/confinement/seccomp_filter.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "unit/runtime/checks_in_child.hpp"

#include <catch2/catch.hpp>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

TEST_CASE("the filter refuses what reaches the kernel or the host", "[runtime][seccomp]") {
    const auto filter = compile_seccomp_filter();
    CHECK(filter.size() < 512);
    const int failed = in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!install_seccomp_filter(filter)) return 1;
        if (errno_of(::mount("x", "/tmp", "tmpfs", 0, "")) != EPERM) return 2;
        if (errno_of(::unshare(CLONE_NEWUSER)) != EPERM) return 3;
        if (errno_of(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)) != EPERM) return 4;
        if (errno_of(::syscall(SYS_clone3, nullptr, 0)) != ENOSYS) return 5;
        if (errno_of(::socket(AF_INET, SOCK_RAW, 1)) != EPERM) return 6;
        if (errno_of(::socket(AF_PACKET, SOCK_RAW, 0)) != EPERM) return 7;
        if (errno_of(::socket(AF_VSOCK, SOCK_STREAM, 0)) != EAFNOSUPPORT) return 8;
        if (errno_of(::socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)) != EPROTONOSUPPORT)
            return 9;
        if (errno_of(::syscall(SYS_bpf, 0, nullptr, 0)) != EPERM) return 10;
        if (errno_of(::syscall(SYS_keyctl, 0, 0, 0, 0, 0)) != ENOSYS) return 11;
        if (errno_of(::syscall(SYS_io_uring_setup, 1, nullptr)) != ENOSYS) return 12;
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

TEST_CASE("the filter answers as a kernel without what it keeps", "[runtime][seccomp]") {
    const auto filter = compile_seccomp_filter();
    const int failed = in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!install_seccomp_filter(filter)) return 1;
        constexpr int kUdpLite = 136;
        constexpr int kMptcp = 262;
        for (const int family : {AF_INET, AF_INET6}) {
            if (errno_of(::socket(family, SOCK_STREAM, kMptcp)) != EPROTONOSUPPORT) return 2;
            if (errno_of(::socket(family, SOCK_STREAM, IPPROTO_SCTP)) != EPROTONOSUPPORT) return 3;
            if (errno_of(::socket(family, SOCK_DGRAM, kUdpLite)) != EPROTONOSUPPORT) return 4;
            if (errno_of(::socket(family, SOCK_SEQPACKET, IPPROTO_SCTP)) != ESOCKTNOSUPPORT)
                return 5;
            if (errno_of(::socket(family, SOCK_DCCP, 0)) != ESOCKTNOSUPPORT) return 6;
            if (errno_of(::socket(family, SOCK_STREAM, IPPROTO_TCP)) != 0) return 7;
            if (errno_of(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP)) != 0) return 8;
        }
        // shadow's programs give up after any other answer.
        if (errno_of(::socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)) != EPROTONOSUPPORT) return 9;
        if (errno_of(::socket(AF_ALG, SOCK_SEQPACKET, 0)) != EAFNOSUPPORT) return 10;
        int pair[2];
        if (errno_of(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) != 0) return 11;
        if (errno_of(::socketpair(AF_TIPC, SOCK_STREAM, 0, pair)) != EAFNOSUPPORT) return 12;
        // The kernel takes 32 bits of each, so what lies above them hides nothing.
        constexpr long kAbove = 1L << 32;
        if (errno_of(::syscall(SYS_socket, AF_INET | kAbove, SOCK_STREAM, kMptcp)) !=
            EPROTONOSUPPORT)
            return 13;
        if (errno_of(::syscall(SYS_socket, AF_ALG | kAbove, SOCK_SEQPACKET, 0)) != EAFNOSUPPORT)
            return 14;
        if (errno_of(::syscall(SYS_io_setup, 1, nullptr)) != ENOSYS) return 15;
        if (errno_of(::syscall(SYS_get_mempolicy, 0, 0, 0, 0, 0)) != ENOSYS) return 16;
        int discipline = 0;
        if (errno_of(::ioctl(0, TIOCSETD, &discipline)) != EPERM) return 17;
        if (errno_of(::ioctl(pair[0], SIOCGIFBR, nullptr)) != ENOPKG) return 18;
        return 0;
    });
    CHECK(failed == 0);
}

TEST_CASE("the limit of core files cannot be changed, and nobody fails for it",
          "[runtime][seccomp]") {
    const auto filter = compile_seccomp_filter();
    const int failed = in_child([&] {
        const rlimit one{1, 1};
        if (::setrlimit(RLIMIT_CORE, &one) < 0) return 1;
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!install_seccomp_filter(filter)) return 2;
        rlimit seen{};
        const auto stays = [&] {
            return ::getrlimit(RLIMIT_CORE, &seen) == 0 && seen.rlim_cur == 1 && seen.rlim_max == 1;
        };
        const rlimit none{0, 0};
        if (errno_of(::setrlimit(RLIMIT_CORE, &none)) != 0 || !stays()) return 3;
        if (errno_of(::syscall(SYS_setrlimit, RLIMIT_CORE, &none)) != 0 || !stays()) return 4;
        constexpr long kAbove = 1L << 32;
        if (::syscall(SYS_prlimit64, 0, RLIMIT_CORE | kAbove, &none, nullptr) != 0 || !stays())
            return 5;
        if (::syscall(SYS_setrlimit, RLIMIT_CORE | kAbove, &none) != 0 || !stays()) return 6;
        if (errno_of(::syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, &seen)) != EPERM) return 7;
        // Others are as ever.
        const rlimit few{32, 32};
        if (::setrlimit(RLIMIT_NOFILE, &few) < 0 || ::getrlimit(RLIMIT_NOFILE, &seen) < 0) return 8;
        return seen.rlim_cur == 32 ? 0 : 9;
    });
    CHECK(failed == 0);
}

TEST_CASE("the filter lets ordinary programs work", "[runtime][seccomp]") {
    const auto filter = compile_seccomp_filter();
    const int failed = in_child([&] {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (!install_seccomp_filter(filter)) return 1;
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
