#include "runtime/native/ground/confinement/seccomp_filter.hpp"

#include <catch2/catch.hpp>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <cerrno>
#include <cstring>
#include <set>

using namespace opensandbox::runtime::native;

namespace {

constexpr std::uint32_t kNoSuchCall = SECCOMP_RET_ERRNO | ENOSYS;
constexpr std::uint32_t kNotPermitted = SECCOMP_RET_ERRNO | EPERM;

/// What the kernel would make of a call without arguments; 0 where the program is not one.
std::uint32_t answer_of(const std::vector<sock_filter>& program, const seccomp_data& data) {
    std::uint32_t value = 0;
    for (std::size_t at = 0; at < program.size(); ++at) {
        const sock_filter& step = program[at];
        const auto jump = [&](bool holds) { at += holds ? step.jt : step.jf; };
        switch (step.code) {
            case BPF_LD | BPF_W | BPF_ABS:
                std::memcpy(&value, reinterpret_cast<const char*>(&data) + step.k, sizeof value);
                break;
            case BPF_ALU | BPF_AND | BPF_K: value &= step.k; break;
            case BPF_JMP | BPF_JA: at += step.k; break;
            case BPF_JMP | BPF_JEQ | BPF_K: jump(value == step.k); break;
            case BPF_JMP | BPF_JGE | BPF_K: jump(value >= step.k); break;
            case BPF_RET | BPF_K: return step.k;
            default: return 0;
        }
    }
    return 0;
}

std::set<int> numbers_of(std::span<const char* const> kNames) {
    std::set<int> numbers;
    for (const char* name : kNames)
        if (const int number = ::seccomp_syscall_resolve_name(name); number >= 0)
            numbers.insert(number);
    return numbers;
}

std::set<int> numbers_by_argument() {
    constexpr const char* kNames[] = {"socket",    "socketpair", "ioctl",       "prlimit64",
                                      "setrlimit", "clone",      "personality", "unshare"};
    return numbers_of(kNames);
}

seccomp_data call(int number) {
    return {number, ::seccomp_arch_native(), 0, {}};
}

}  // namespace

TEST_CASE("every call that is on a list is answered as the list says", "[runtime][seccomp]") {
    const auto allowed = numbers_of(allowed_system_calls());
    const auto absent = numbers_of(absent_system_calls());
    const auto by_argument = numbers_by_argument();
    const auto program = compile_seccomp_filter();
    REQUIRE(allowed.size() > 250);
    for (int number = 0; number < 1000; ++number) {
        if (by_argument.contains(number)) continue;
        std::uint32_t expected = kNotPermitted;
        if (absent.contains(number) || number > *allowed.rbegin()) expected = kNoSuchCall;
        if (allowed.contains(number)) expected = SECCOMP_RET_ALLOW;
        INFO(number);
        CHECK(answer_of(program, call(number)) == expected);
    }
}

TEST_CASE("what a filter decides by arguments has an answer for each", "[runtime][seccomp]") {
    const auto program = compile_seccomp_filter();
    for (const int number : numbers_by_argument()) {
        INFO(number);
        CHECK(answer_of(program, call(number)) != 0);
    }
    seccomp_data clone = call(::seccomp_syscall_resolve_name("clone"));
    CHECK(answer_of(program, clone) == SECCOMP_RET_ALLOW);
    for (const unsigned long namespace_of : {0x20000UL, 0x02000000UL, 0x04000000UL, 0x08000000UL,
                                             0x10000000UL, 0x20000000UL, 0x40000000UL}) {
        clone.args[0] = namespace_of | 17;
        CHECK(answer_of(program, clone) == kNotPermitted);
    }
    seccomp_data personality = call(::seccomp_syscall_resolve_name("personality"));
    for (const auto& [persona, expected] :
         {std::pair<unsigned long, std::uint32_t>{0x40000, SECCOMP_RET_ALLOW},
          {0xffffffff, SECCOMP_RET_ALLOW},
          {0x20008, SECCOMP_RET_ALLOW},
          {0x400000, kNotPermitted},
          {0x8000000, kNotPermitted}}) {
        personality.args[0] = persona;
        CHECK(answer_of(program, personality) == expected);
    }
}

TEST_CASE("other architectures have no calls", "[runtime][seccomp]") {
    const auto program = compile_seccomp_filter();
    for (const unsigned architecture : {unsigned{AUDIT_ARCH_I386}, unsigned{AUDIT_ARCH_ARM}}) {
        seccomp_data data = call(0);
        data.arch = architecture;
        CHECK(answer_of(program, data) == kNoSuchCall);
    }
}

TEST_CASE("the broker's filter allows more, and nothing else", "[runtime][seccomp]") {
    const auto of_sandbox = compile_seccomp_filter();
    const auto of_broker = compile_broker_filter();
    constexpr const char* kNames[] = {"mount",   "umount2",  "open_tree", "move_mount",   "fsopen",
                                      "fsmount", "fsconfig", "setns",     "mount_setattr"};
    const auto more = numbers_of(kNames);
    const auto by_argument = numbers_by_argument();
    for (int number = 0; number < 1000; ++number) {
        if (by_argument.contains(number)) continue;
        INFO(number);
        const auto expected =
            more.contains(number) ? SECCOMP_RET_ALLOW : answer_of(of_sandbox, call(number));
        CHECK(answer_of(of_broker, call(number)) == expected);
    }
}
