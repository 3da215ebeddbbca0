#include "runtime/native/ground/confinement/seccomp_filter.hpp"

#include "runtime/native/ground/confinement/argument_rules.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/system_calls.hpp"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <string>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

struct Release {
    void operator()(void* context) const { ::seccomp_release(context); }
};
using Filter = std::unique_ptr<void, Release>;

Error failed(const char* what, int negative_errno) {
    return Error::from_errno(-negative_errno, std::string("seccomp filter: ") + what);
}

/// Names that this libseccomp or this architecture does not know are skipped: their numbers answer
/// ENOSYS. Returns the highest number added.
Result<unsigned> add_plain(scmp_filter_ctx filter, std::span<const char* const> names) {
    unsigned highest = 0;
    for (const char* name : names) {
        const int number = ::seccomp_syscall_resolve_name(name);
        if (number < 0) continue;
        const int result = ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
        if (result < 0) return failed(name, result);
        highest = std::max(highest, static_cast<unsigned>(number));
    }
    return highest;
}

Status add(scmp_filter_ctx filter, std::uint32_t action, const char* name,
           std::initializer_list<scmp_arg_cmp> conditions) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number < 0) return {};
    const int result = ::seccomp_rule_add_array(
        filter, action, number, static_cast<unsigned>(conditions.size()), conditions.begin());
    if (result < 0) return failed(name, result);
    return {};
}

scmp_arg_cmp equals(unsigned argument, std::uint64_t value) {
    return {argument, SCMP_CMP_EQ, value, 0};
}
scmp_arg_cmp masked(unsigned argument, std::uint64_t mask, std::uint64_t value) {
    return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

/// Programs have another way where a kernel lacks these, and no other after EPERM.
Status add_absent(scmp_filter_ctx filter) {
    for (const char* name : absent_system_calls()) {
        if (auto s = add(filter, SCMP_ACT_ERRNO(ENOSYS), name, {}); !s) return s;
    }
    return {};
}

/// A new namespace of any kind would bring capabilities back; 0x80 is CLONE_NEWTIME.
constexpr std::uint64_t all_namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
/// Of these a broker makes none.
constexpr std::uint64_t broker_lacks = CLONE_NEWUSER | CLONE_NEWCGROUP;

/// `namespaces`: those that clone may not make.
Status add_conditional(scmp_filter_ctx filter, std::uint64_t namespaces) {
    if (auto s = add(filter, SCMP_ACT_ALLOW, "clone", {masked(0, namespaces, 0)}); !s) return s;
    for (const std::uint64_t persona :
         {0UL, 0x0008UL, 0x20000UL, 0x20008UL, 0x40000UL, 0xffffffffUL}) {
        if (auto s = add(filter, SCMP_ACT_ALLOW, "personality", {equals(0, persona)}); !s) return s;
    }
    return {};
}

Result<std::vector<sock_filter>> export_program(scmp_filter_ctx filter) {
    UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
    if (!file) return last_error("memfd_create");
    if (const int result = ::seccomp_export_bpf(filter, file.get()); result < 0) {
        return failed("export", result);
    }
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    if (size <= 0 || size % static_cast<off_t>(sizeof(sock_filter)) != 0) {
        return Error(ErrorCode::internal, "seccomp filter: unexpected size");
    }
    std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
    if (::pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size) {
        return last_error("read seccomp filter");
    }
    return program;
}

/// Comes before libseccomp's program: another ABI, and calls newer than all we know, answer as from
/// a kernel without them. x32 calls have numbers beyond any.
std::vector<sock_filter> prologue(unsigned highest) {
    const std::uint32_t no_such_call = SECCOMP_RET_ERRNO | ENOSYS;
    return {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ::seccomp_arch_native(), 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, highest, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, no_such_call),
    };
}

/// Mounts, and entering namespaces that the broker made.
Status add_for_broker(scmp_filter_ctx filter) {
    for (const char* name : {"mount", "umount2", "open_tree", "move_mount", "fsopen", "fsconfig",
                             "fsmount", "mount_setattr", "setns"}) {
        if (auto s = add(filter, SCMP_ACT_ALLOW, name, {}); !s) return s;
    }
    // A thread with a directory of its own.
    return add(filter, SCMP_ACT_ALLOW, "unshare", {equals(0, CLONE_FS)});
}

enum class Scope : std::uint8_t { sandbox, broker };

Result<std::vector<sock_filter>> compile(Scope scope) {
    Filter filter(::seccomp_init(SCMP_ACT_ERRNO(EPERM)));
    if (!filter) return Error(ErrorCode::internal, "seccomp filter: cannot begin");
    scmp_filter_ctx context = filter.get();
    // A tree instead of a list: a call costs a dozen comparisons, not three hundred.
    ::seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    auto highest = add_plain(context, allowed_system_calls());
    if (!highest) return highest.error();
    if (auto s = add_absent(context); !s) return s.error();
    const bool broker = scope == Scope::broker;
    if (auto s = add_conditional(context, broker ? broker_lacks : all_namespaces); !s) {
        return s.error();
    }
    if (broker) {
        if (auto s = add_for_broker(context); !s) return s.error();
    }
    auto rest = export_program(context);
    if (!rest) return rest.error();
    auto program = prologue(*highest);
    const auto by_argument = argument_rules();
    program.insert(program.end(), by_argument.begin(), by_argument.end());
    program.insert(program.end(), rest->begin(), rest->end());
    return program;
}

}  // namespace

Result<std::vector<sock_filter>> compile_seccomp_filter() {
    return compile(Scope::sandbox);
}

Result<std::vector<sock_filter>> compile_broker_filter() {
    return compile(Scope::broker);
}

Status install_seccomp_filter(std::span<const sock_filter> program) {
    const sock_fprog argument{static_cast<unsigned short>(program.size()),
                              const_cast<sock_filter*>(program.data())};
    return check(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &argument), "seccomp");
}

}  // namespace opensandbox::runtime::native
