#include "base/descriptor_limit.hpp"

#include <sys/resource.h>

namespace opensandbox {

void raise_descriptor_limit() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    // Refused, the process goes on with what it has.
    (void)::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace opensandbox
