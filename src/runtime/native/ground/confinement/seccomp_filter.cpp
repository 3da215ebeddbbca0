#include "runtime/native/ground/confinement/seccomp_filter.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr std::uint32_t kNotPermitted = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kNoSuchCall = SECCOMP_RET_ERRNO | ENOSYS;

/// Mounts, and entering namespaces that the broker made.
constexpr const char* kOfBroker[] = {"mount",   "umount2",  "open_tree", "move_mount",   "fsopen",
                                     "fsmount", "fsconfig", "setns",     "mount_setattr"};

/// Neighbouring numbers that are answered alike, from the first up to the next run's.
struct Run {
    std::uint32_t first;
    std::uint32_t action;
};

/// A comparison halves what is left. Each sandbox pays for the compilation of every instruction.
std::vector<sock_filter> tree_of(std::span<const Run> runs) {
    if (runs.size() == 1) return {BPF_STMT(BPF_RET | BPF_K, runs.front().action)};
    const auto upper_runs = runs.subspan(runs.size() / 2);
    const auto lower = tree_of(runs.first(runs.size() / 2));
    const auto upper = tree_of(upper_runs);
    std::vector<sock_filter> tree;
    const std::uint32_t least = upper_runs.front().first;
    if (lower.size() <= std::numeric_limits<std::uint8_t>::max()) {
        const auto skipped = static_cast<std::uint8_t>(lower.size());
        tree.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, skipped, 0));
    } else {
        const auto skipped = static_cast<std::uint32_t>(lower.size());
        tree.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 1));
        tree.push_back(BPF_STMT(BPF_JMP | BPF_JA, skipped));
    }
    tree.insert(tree.end(), lower.begin(), lower.end());
    tree.insert(tree.end(), upper.begin(), upper.end());
    return tree;
}

/// What calls are answered by their number alone: newer ones than all that are allowed, as by a
/// kernel without them. Names that this libseccomp or this architecture does not know are skipped.
class Answers {
  public:
    void allow(std::span<const char* const> names) {
        for (const char* name : names) {
            const int number = ::seccomp_syscall_resolve_name(name);
            if (number < 0) continue;
            const auto at = static_cast<std::size_t>(number);
            if (at >= actions_.size()) actions_.resize(at + 1, kNotPermitted);
            actions_[at] = SECCOMP_RET_ALLOW;
        }
    }

    /// Programs have another way where a kernel lacks these, and no other after EPERM.
    void lack(std::span<const char* const> names) {
        for (const char* name : names) {
            const int number = ::seccomp_syscall_resolve_name(name);
            if (number < 0) continue;
            const auto at = static_cast<std::size_t>(number);
            if (at < actions_.size()) actions_[at] = kNoSuchCall;
        }
    }

    [[nodiscard]] std::vector<sock_filter> program() const {
        std::vector<Run> runs;
        for (std::uint32_t number = 0; number < actions_.size(); ++number) {
            const std::uint32_t action = actions_[number];
            if (runs.empty() || runs.back().action != action) runs.push_back({number, action});
        }
        runs.push_back({static_cast<std::uint32_t>(actions_.size()), kNoSuchCall});
        std::vector<sock_filter> program = tree_of(runs);
        program.insert(program.begin(),
                       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
        return program;
    }

  private:
    std::vector<std::uint32_t> actions_;
};

std::vector<sock_filter> compile(FilterScope scope) {
    Answers answers;
    answers.allow(allowed_system_calls());
    if (scope == FilterScope::broker) answers.allow(kOfBroker);
    answers.lack(absent_system_calls());
    // Another ABI answers as a kernel without it; the numbers of x32 are beyond any.
    std::vector<sock_filter> program{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ::seccomp_arch_native(), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, kNoSuchCall),
    };
    for (const auto& rest : {argument_rules(scope), answers.program()})
        program.insert(program.end(), rest.begin(), rest.end());
    return program;
}

}  // namespace

std::vector<sock_filter> compile_seccomp_filter() {
    return compile(FilterScope::sandbox);
}

std::vector<sock_filter> compile_broker_filter() {
    return compile(FilterScope::broker);
}

Status install_seccomp_filter(std::span<const sock_filter> program) {
    const sock_fprog argument{static_cast<unsigned short>(program.size()),
                              const_cast<sock_filter*>(program.data())};
    return check(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &argument), "seccomp");
}

}  // namespace opensandbox::runtime::native
