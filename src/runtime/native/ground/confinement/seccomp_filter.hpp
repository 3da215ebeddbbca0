#pragma once

#include "base/error.hpp"

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <vector>

namespace opensandbox::runtime::native {

/// The system call filter of every sandbox as a BPF program. An allow-list: calls that are not on
/// it answer EPERM where a right is what they need, and ENOSYS where programs have another way (as
/// do those newer than all on it); argument_rules() tells of calls that depend on their arguments.
/// Other architectures and ABIs (32 bit, x32) answer ENOSYS altogether.
std::vector<sock_filter> compile_seccomp_filter();

/// The filter of an isolation broker (inside/broker_process.hpp): what sandboxes may, and besides
/// what it takes to make sessions and to work among their mounts. User namespaces it can make none.
std::vector<sock_filter> compile_broker_filter();

/// Installs it in this process for good. Either no_new_privs is set or the caller has
/// CAP_SYS_ADMIN in its user namespace.
Status install_seccomp_filter(std::span<const sock_filter> program);

// What the filters are compiled of.

/// System calls that sandboxes may make, most of them whatever the arguments. Not among them, and
/// so refused: mounts and namespaces; kernel modules, kexec, bpf, tracing of the kernel;
/// userfaultfd; setting clocks, swap and reboot; handles to files past their paths.
std::span<const char* const> allowed_system_calls();

/// Refused as by a kernel that lacks them (ENOSYS), since programs have another way then.
std::span<const char* const> absent_system_calls();

/// Whose filter it is.
enum class FilterScope : std::uint8_t { sandbox, broker };

/// The part of the filter that decides by arguments, as BPF that goes on with what follows it for
/// every other call. Of arguments that the kernel takes as 32 bits it looks at those 32, whatever a
/// program left above them. What it refuses is answered as by a kernel that was built without it
/// (EAFNOSUPPORT, EPROTONOSUPPORT), which is what programs go on after; EPERM only where a right is
/// what is missing.
std::vector<sock_filter> argument_rules(FilterScope scope);

}  // namespace opensandbox::runtime::native
