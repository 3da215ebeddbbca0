#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "runtime/native/records/protocol.hpp"

#include <vector>

namespace opensandbox::runtime::native {

/// From here on no file on a volume that users of the host can reach gets set-id bits or
/// capabilities from inside. Elsewhere it gets them as ever: package managers ask for them. Does
/// nothing when there is no such volume. To be called as the sandbox's first process, with its root
/// and all its volumes in place, confined but for this; whatever it starts is held by it, too.
Status keep_set_id_off_volumes(const std::vector<VolumeMount>& volumes);

// The second filter of system calls by which it does so (set_id_filter.cpp), for sandboxes whose
// files users of the host can reach: who runs a set-id program, or one with capabilities, gets its
// owner's rights on the host, too. It looks at every call that can make a file one. The modes of
// other calls hold no such bit: the kernel takes it from directories and leaves it out of what it
// makes by itself.

/// Calls of this thread and of all that come from it wait for a supervisor on the descriptor
/// returned: set-id modes, extended attributes, `openat2`. New files cannot be made with such a
/// mode (EPERM). `unsupported` where the kernel, as gVisor's, knows no supervisors.
Result<UniqueFd> supervise_set_id();

/// The same without a supervisor: set-id modes answer EPERM wherever the file is, `openat2` ENOSYS.
/// Of attributes it knows nothing: the caller must be without CAP_SETFCAP.
Status refuse_set_id();

}  // namespace opensandbox::runtime::native
