#include "doctor/probe.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/subordinate_ids.hpp"
#include "runtime/native/ground/kernel/visible_proc.hpp"

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace opensandbox::doctor {

using runtime::native::read_file_or_empty;

namespace {

bool opens(const char* path) {
    return static_cast<bool>(UniqueFd(::open(path, O_RDWR | O_CLOEXEC)));
}

bool filters_system_calls() {
    unsigned action = SECCOMP_RET_ERRNO;
    return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

}  // namespace

void probe_kernel(HostFacts& facts) {
    for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
        if (::access((std::string("/proc/self/ns/") + kind).c_str(), F_OK) != 0) {
            facts.missing_namespaces.emplace_back(kind);
        }
    }
    const std::string limit = read_file_or_empty("/proc/sys/user/max_user_namespaces");
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(limit.data(), limit.data() + limit.size(), number);
    if (parsed.ec == std::errc{}) facts.max_user_namespaces = number;
    const auto made = in_child([] {
        return runtime::native::check(::unshare(CLONE_NEWUSER), "unshare a user namespace");
    });
    if (!made) facts.user_namespace_problem = made.error().message();
    if (made && facts.root) {
        // Its mounts go with the child.
        const auto shown = in_child([] { return runtime::native::ensure_visible_proc("/tmp"); });
        if (!shown) facts.user_namespace_problem = shown.error().message();
    }
    const std::string uids = read_file_or_empty("/etc/subuid");
    const std::string gids = read_file_or_empty("/etc/subgid");
    using runtime::native::subordinate_range;
    facts.subordinate_uids = subordinate_range(uids, facts.user, ::geteuid()).count;
    facts.subordinate_gids = subordinate_range(gids, facts.user, ::geteuid()).count;
    facts.seccomp = filters_system_calls();
    const long version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    facts.landlock = version > 0 ? static_cast<int>(version) : 0;
    facts.fuse = opens("/dev/fuse");
    facts.tun = opens("/dev/net/tun");
}

}  // namespace opensandbox::doctor
