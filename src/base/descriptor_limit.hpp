#pragma once

#include <cstddef>

namespace opensandbox {

/// Lets this process open as many descriptors as it may: the soft limit becomes the hard one. What
/// it starts inherits that.
void raise_descriptor_limit();

/// How many descriptors this process may have open at once (the soft limit).
std::size_t descriptor_limit();

}  // namespace opensandbox
