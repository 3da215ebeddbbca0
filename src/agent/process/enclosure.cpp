#include "agent/process/enclosure.hpp"

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// Whatever is kept must be permitted now: those that the change of user took stay gone.
__attribute__((no_sanitize("address", "undefined", "thread"))) bool reduce_capabilities(
    std::uint64_t keep) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &header, data) != 0) return false;
    for (int word = 0; word < 2; ++word) {
        data[word].permitted &= static_cast<std::uint32_t>(keep >> (32 * word));
        data[word].effective = data[word].permitted;
        data[word].inheritable = 0;
    }
    return ::syscall(SYS_capset, &header, data) == 0;
}

}  // namespace

__attribute__((no_sanitize("address", "undefined", "thread"))) bool bound_capabilities(
    const Enclosure& enclosure) {
    for (unsigned capability = 0; capability < 64; ++capability) {
        if ((enclosure.capabilities >> capability & 1) != 0) continue;
        int present = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
        // Past the last one that this kernel has.
        if (present < 0) break;
        if (present == 1 && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) return false;
    }
    return true;
}

__attribute__((no_sanitize("address", "undefined", "thread"))) bool put_up_walls(
    const Enclosure& enclosure) {
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (enclosure.no_new_privileges && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    if (!reduce_capabilities(enclosure.capabilities)) return false;
    if (enclosure.landlock >= 0 &&
        ::syscall(SYS_landlock_restrict_self, enclosure.landlock, 0) != 0) {
        return false;
    }
    if (enclosure.filter.empty()) return true;
    const sock_fprog program{static_cast<unsigned short>(enclosure.filter.size()),
                             const_cast<sock_filter*>(enclosure.filter.data())};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

}  // namespace opensandbox::agent
