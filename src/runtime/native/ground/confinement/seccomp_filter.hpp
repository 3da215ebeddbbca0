#pragma once

#include "base/error.hpp"

#include <linux/filter.h>

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

}  // namespace opensandbox::runtime::native
