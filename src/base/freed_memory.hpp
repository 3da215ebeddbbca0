#pragma once

namespace opensandbox {

/// Keeps up to 8 MiB of what this process frees: servers give buffers back and ask for them again
/// all the time, and returned to the kernel each time they cost more than what is done with them.
/// For the whole process; to be called before it has threads.
void keep_freed_memory();

}  // namespace opensandbox
