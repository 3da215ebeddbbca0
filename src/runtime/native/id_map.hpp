#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>

namespace opensandbox::runtime::native {

/// Maps ids 0 to 65,535 of the process's user namespace to `base` and above on the host.
Status map_ids(pid_t pid, std::uint32_t base);

/// The user namespace of a process, as a descriptor that keeps it alive.
Result<UniqueFd> user_namespace_of(pid_t pid);

/// A user namespace with that map and nothing in it, for probing.
Result<UniqueFd> make_user_namespace(std::uint32_t base);

}  // namespace opensandbox::runtime::native
