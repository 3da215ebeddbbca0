#pragma once

namespace opensandbox {

/// Lets this process open as many descriptors as it may: the soft limit becomes the hard one. What
/// it starts inherits that.
void raise_descriptor_limit();

}  // namespace opensandbox
