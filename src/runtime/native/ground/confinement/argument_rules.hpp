#pragma once

#include <linux/filter.h>

#include <vector>

namespace opensandbox::runtime::native {

/// The part of the filter that decides by arguments, as BPF that goes on with what follows it for
/// every other call. Of arguments that the kernel takes as 32 bits it looks at those 32, whatever a
/// program left above them. What it refuses is answered as by a kernel that was built without it
/// (EAFNOSUPPORT, EPROTONOSUPPORT), which is what programs go on after; EPERM only where a right is
/// what is missing.
std::vector<sock_filter> argument_rules();

}  // namespace opensandbox::runtime::native
