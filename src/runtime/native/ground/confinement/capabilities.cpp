#include "runtime/native/ground/confinement/capabilities.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <initializer_list>
#include <unistd.h>

namespace opensandbox::runtime::native {

std::uint64_t sandbox_capabilities() {
    std::uint64_t set = 0;
    for (const int capability :
         {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID,
          CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_SETFCAP}) {
        set |= std::uint64_t{1} << capability;
    }
    return set;
}

Status drop_capabilities(std::uint64_t keep) {
    for (int capability = 0; capability < 64; ++capability) {
        if ((keep >> capability & 1) != 0) continue;
        // Past the last one that this kernel has.
        if (::prctl(PR_CAPBSET_DROP, capability) < 0) {
            if (errno == EINVAL) break;
            return last_error("drop from the bounding set");
        }
    }
    if (auto s = check(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient set");
        !s) {
        return s;
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    for (int word = 0; word < 2; ++word) {
        data[word].permitted = static_cast<std::uint32_t>(keep >> (32 * word));
        data[word].effective = data[word].permitted;
    }
    return check(::syscall(SYS_capset, &header, data), "capset");
}

}  // namespace opensandbox::runtime::native
