#include "agent/ground/clone3_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr const char* kVariable = "EXECD_CLONE3_COMPAT";
/// Tells the program started anew that the filter is there.
constexpr const char* kGuard = "_EXECD_CLONE3_COMPAT_APPLIED";
/// The same on every architecture.
constexpr std::uint32_t kClone3 = 435;

}  // namespace

std::optional<Clone3Compat> parse_clone3_compat(std::string_view value) {
    std::string text(value);
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (text == "1" || text == "true" || text == "yes" || text == "on") return Clone3Compat::on;
    if (text == "reexec") return Clone3Compat::reexec;
    if (text.empty() || text == "0" || text == "false" || text == "no" || text == "off") {
        return Clone3Compat::off;
    }
    return std::nullopt;
}

Status deny_clone3() {
    std::array<sock_filter, 4> rules{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kClone3, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return Error::from_errno(errno, "set no_new_privs");
    }
    long done =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    // A positive number is a thread that could not take the filter over.
    if (done > 0) return Error(ErrorCode::conflict, "a thread has another seccomp filter");
    if (done < 0) return Error::from_errno(errno, "install the seccomp filter");
    return {};
}

Status apply_clone3_compat(char** argv) {
    const char* value = std::getenv(kVariable);
    auto mode = parse_clone3_compat(value ? value : "");
    if (!mode) {
        return Error(ErrorCode::invalid_argument, std::string("invalid value \"") + value +
                                                      "\" for " + kVariable +
                                                      ": must be 1, 0 or reexec");
    }
    if (*mode == Clone3Compat::off) return {};
    if (const char* guard = std::getenv(kGuard)) {
        bool applied = std::string_view(guard) == "1";
        ::unsetenv(kGuard);
        if (applied && *mode == Clone3Compat::reexec) return {};
    }
    if (Status denied = deny_clone3(); !denied) return denied.error().within(kVariable);
    if (*mode == Clone3Compat::on) return {};
    ::setenv(kGuard, "1", 1);
    ::execv("/proc/self/exe", argv);
    return Error::from_errno(errno, "start the program anew");
}

}  // namespace opensandbox::agent
