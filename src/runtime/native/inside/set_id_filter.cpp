#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/inside/set_id_supervisor.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <span>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

constexpr std::uint32_t kSetIdBits = S_ISUID | S_ISGID;
/// Without these an open makes no file and its mode means nothing.
constexpr std::uint32_t kMakesFile = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
constexpr int kNoRule = -1;

enum class Verdict : std::uint8_t { refuse, ask };

/// One call, and which of its arguments are looked at.
struct Rule {
    std::uint32_t call;
    int mode;   ///< kNoRule: whatever the mode
    int flags;  ///< that say whether there is a mode
    Verdict verdict;
};

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

constexpr Rule kRules[] = {
#ifdef SYS_chmod
    {SYS_chmod, 1, kNoRule, Verdict::ask},      {SYS_open, 2, 1, Verdict::refuse},
    {SYS_creat, 1, kNoRule, Verdict::refuse},   {SYS_mknod, 1, kNoRule, Verdict::refuse},
#endif
    {SYS_fchmod, 1, kNoRule, Verdict::ask},     {SYS_fchmodat, 2, kNoRule, Verdict::ask},
    {SYS_fchmodat2, 2, kNoRule, Verdict::ask},  {SYS_openat, 3, 2, Verdict::refuse},
    {SYS_mknodat, 2, kNoRule, Verdict::refuse},
};
constexpr std::uint32_t kAttributeCalls[] = {SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr};

/// The half of an argument that holds modes and flags.
constexpr std::uint32_t argument(int number) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                      sizeof(std::uint64_t) * static_cast<std::size_t>(number));
}

void add_rule(std::vector<sock_filter>& program, const Rule& rule, std::uint32_t action) {
    std::vector<sock_filter> block;
    if (rule.flags != kNoRule) {
        block.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(rule.flags)));
        block.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kMakesFile, 1, 0));
        block.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    if (rule.mode != kNoRule) {
        block.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(rule.mode)));
        block.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kSetIdBits, 1, 0));
        block.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    block.push_back(BPF_STMT(BPF_RET | BPF_K, action));
    // Behind it the accumulator still holds the call's number.
    const auto length = static_cast<std::uint8_t>(block.size());
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule.call, 0, length));
    program.insert(program.end(), block.begin(), block.end());
}

std::vector<sock_filter> build(bool supervised) {
    constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
    const std::uint32_t ask = supervised ? SECCOMP_RET_USER_NOTIF : kRefuse;
    std::vector<sock_filter> program;
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (const Rule& rule : kRules)
        add_rule(program, rule, rule.verdict == Verdict::ask ? ask : kRefuse);
    // Its mode is in memory, out of the filter's sight.
    add_rule(program, {SYS_openat2, kNoRule, kNoRule, Verdict::ask},
             supervised ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | ENOSYS);
    if (supervised) {
        for (const std::uint32_t call : kAttributeCalls)
            add_rule(program, {call, kNoRule, kNoRule, Verdict::ask}, ask);
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    return program;
}

long install(std::span<sock_filter> program, unsigned flags) {
    const sock_fprog argument{static_cast<unsigned short>(program.size()), program.data()};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &argument);
}

}  // namespace

Result<UniqueFd> supervise_set_id() {
    auto program = build(true);
    UniqueFd listener(static_cast<int>(install(program, SECCOMP_FILTER_FLAG_NEW_LISTENER)));
    if (listener) return listener;
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
        return Error(ErrorCode::unsupported, "the kernel supervises no system calls");
    }
    return last_error("seccomp with a supervisor");
}

Status refuse_set_id() {
    auto program = build(false);
    return check(install(program, 0), "seccomp");
}

}  // namespace opensandbox::runtime::native
