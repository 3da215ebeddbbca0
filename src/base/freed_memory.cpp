#include "base/freed_memory.hpp"

#include <malloc.h>

namespace opensandbox {

void keep_freed_memory() {
    constexpr int kLargeBlock = 512 * 1024;
    constexpr int kKept = 8 * 1024 * 1024;
    // Without its list of small blocks malloc has nothing to merge whenever a buffer is asked for.
    ::mallopt(M_MXFAST, 0);
    // One large block freed would otherwise teach malloc to keep blocks of that size for good.
    ::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
    ::mallopt(M_TRIM_THRESHOLD, kKept);
}

}  // namespace opensandbox
