#include "agent/isolated/walls.hpp"

#include "base/unique_fd.hpp"

#include <linux/capability.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <memory>
#include <sched.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::array kDenied{
    // Namespaces and mounts.
    "unshare", "setns", "mount", "umount", "umount2", "pivot_root", "mount_setattr", "move_mount",
    "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "open_by_handle_at",
    "name_to_handle_at", "quotactl", "quotactl_fd", "swapon", "swapoff",
    // The kernel and the machine.
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "syslog", "acct", "iopl", "ioperm", "settimeofday", "clock_settime",
    "clock_adjtime", "adjtimex", "nfsservctl", "lookup_dcookie", "vhangup", "uselib", "_sysctl",
    // Keys belong to users, not to namespaces.
    "keyctl", "add_key", "request_key"};

struct Release {
    void operator()(void* context) const { ::seccomp_release(context); }
};
using Filter = std::unique_ptr<void, Release>;

Error failed(const char* what, int negative_errno) {
    return Error::from_errno(-negative_errno, std::string("seccomp filter: ") + what);
}

Status deny(scmp_filter_ctx filter, const std::string& name, bool must_exist) {
    const int number = ::seccomp_syscall_resolve_name(name.c_str());
    if (number == __NR_SCMP_ERROR && must_exist) {
        return Error(ErrorCode::invalid_argument, "seccomp.deny: no such system call: " + name);
    }
    // Those of other architectures have negative numbers and cannot be made here.
    if (number < 0) return {};
    int result = ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
    return result < 0 && result != -EEXIST ? failed(name.c_str(), result) : Status();
}

Status deny_new_namespaces(scmp_filter_ctx filter) {
    for (std::uint64_t flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                               CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
        const scmp_arg_cmp set{0, SCMP_CMP_MASKED_EQ, flag, flag};
        int result =
            ::seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, &set);
        if (result < 0) return failed("clone", result);
    }
    // Programs fall back to clone.
    int result = ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    return result < 0 ? failed("clone3", result) : Status();
}

Result<std::vector<sock_filter>> export_program(scmp_filter_ctx filter) {
    UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
    if (!file) return Error::from_errno(errno, "memfd_create");
    if (int result = ::seccomp_export_bpf(filter, file.get()); result < 0) {
        return failed("export", result);
    }
    off_t size = ::lseek(file.get(), 0, SEEK_END);
    std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
    if (::pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size) {
        return Error::from_errno(errno, "seccomp filter: read");
    }
    return program;
}

}  // namespace

std::uint64_t kept_capabilities(IsolationProfile profile, const IsolationConfig& config) {
    std::uint64_t kept = config.kept_capabilities;
    if (profile == IsolationProfile::strict) return kept;
    for (int capability :
         {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID,
          CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_SETFCAP}) {
        kept |= std::uint64_t{1} << capability;
    }
    return kept;
}

Result<std::vector<sock_filter>> compile_deny_filter(const std::vector<std::string>& denied) {
    Filter filter(::seccomp_init(SCMP_ACT_ALLOW));
    if (!filter) return Error(ErrorCode::internal, "seccomp filter: cannot begin");
    scmp_filter_ctx context = filter.get();
    ::seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    // Calls in the numbers of another architecture would pass under other names.
    ::seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    for (const char* name : kDenied) {
        if (Status added = deny(context, name, false); !added) return added.error();
    }
    for (const std::string& name : denied) {
        if (Status added = deny(context, name, true); !added) return added.error();
    }
    if (Status added = deny_new_namespaces(context); !added) return added.error();
    return export_program(context);
}

Result<Enclosure> walls_of(IsolationProfile profile, const IsolationConfig& config) {
    Enclosure walls;
    walls.capabilities = kept_capabilities(profile, config) & config.capabilities;
    walls.filter = config.filter;
    if (!config.hardening || config.brokered()) return walls;
    auto filter = compile_deny_filter(config.denied_calls);
    if (!filter) return filter.error();
    walls.filter = std::move(*filter);
    return walls;
}

}  // namespace opensandbox::agent
