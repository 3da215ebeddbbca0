#pragma once

#include "base/error.hpp"

#include <cstdint>

namespace opensandbox::runtime::native {

/// What root keeps inside: enough for package managers and daemons, nothing over the kernel.
/// Docker's default set without MKNOD, NET_RAW and AUDIT_WRITE.
std::uint64_t sandbox_capabilities();

/// Reduces every set of this process to those of `keep` it has; nothing can bring others back.
Status drop_capabilities(std::uint64_t keep);

}  // namespace opensandbox::runtime::native
