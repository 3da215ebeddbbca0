#pragma once

#include "base/error.hpp"
#include "runtime/native/records/protocol.hpp"

#include <vector>

namespace opensandbox::runtime::native {

/// From here on no file on a volume that users of the host can reach gets set-id bits or
/// capabilities from inside. Elsewhere it gets them as ever: package managers ask for them. Does
/// nothing when there is no such volume. To be called as the sandbox's first process, with its root
/// and all its volumes in place, confined but for this; whatever it starts is held by it, too.
Status keep_set_id_off_volumes(const std::vector<VolumeMount>& volumes);

}  // namespace opensandbox::runtime::native
