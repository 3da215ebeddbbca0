#pragma once

#include <span>

namespace opensandbox::runtime::native {

/// System calls that sandboxes may make whatever the arguments. Not among them, and so
/// refused: mounts and namespaces; kernel modules, kexec, bpf, tracing of the kernel; io_uring and
/// userfaultfd, whose reach outgrows a filter; keys; setting clocks, swap and reboot; handles to
/// files past their paths; placement of other processes' memory.
std::span<const char* const> allowed_system_calls();

}  // namespace opensandbox::runtime::native
