#pragma once

#include <span>

namespace opensandbox::runtime::native {

/// System calls that sandboxes may make, most of them whatever the arguments. Not among them, and
/// so refused: mounts and namespaces; kernel modules, kexec, bpf, tracing of the kernel;
/// userfaultfd; setting clocks, swap and reboot; handles to files past their paths.
std::span<const char* const> allowed_system_calls();

/// Refused as by a kernel that lacks them (ENOSYS), since programs have another way then.
std::span<const char* const> absent_system_calls();

}  // namespace opensandbox::runtime::native
