#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace opensandbox::runtime::native {

/// Whose filter it is.
enum class FilterScope : std::uint8_t { sandbox, broker };

/// The part of the filter that decides by arguments, as BPF that goes on with what follows it for
/// every other call. Of arguments that the kernel takes as 32 bits it looks at those 32, whatever a
/// program left above them. What it refuses is answered as by a kernel that was built without it
/// (EAFNOSUPPORT, EPROTONOSUPPORT), which is what programs go on after; EPERM only where a right is
/// what is missing.
std::vector<sock_filter> argument_rules(FilterScope scope);

}  // namespace opensandbox::runtime::native
