#include "base/descriptor_limit.hpp"

#include <sys/resource.h>

#include <cstdint>

namespace opensandbox {

void raise_descriptor_limit() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    // Refused, the process goes on with what it has.
    (void)::setrlimit(RLIMIT_NOFILE, &files);
}

std::size_t descriptor_limit() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) {
        return SIZE_MAX;
    }
    return files.rlim_cur;
}

}  // namespace opensandbox
