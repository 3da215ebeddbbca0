#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>

namespace opensandbox::runtime::native {

/// Maps the first `count` ids of the process's user namespace to `base` and above of ours.
Status map_ids(pid_t pid, std::uint32_t base, std::uint32_t count = 65'536);

/// How many ids from 0 on both maps of this process's user namespace have; at most 65,536.
std::uint32_t ids_of_this_namespace();

/// The user namespace of a process, as a descriptor that keeps it alive.
Result<UniqueFd> user_namespace_of(pid_t pid);

/// A user namespace with that map and nothing in it, for probing.
Result<UniqueFd> make_user_namespace(std::uint32_t base);

}  // namespace opensandbox::runtime::native
