#include "runtime/native/ground/kernel/sanitizer_reports.hpp"

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#include <cstdint>
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

void keep_sanitizer_reports() {
    // Far above what anybody counts on.
    constexpr int lowest = 200;
    const std::intptr_t kept = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, lowest);
    if (kept >= 0) __sanitizer_set_report_fd(reinterpret_cast<void*>(kept));  // NOLINT
}

}  // namespace opensandbox::runtime::native
#else
namespace opensandbox::runtime::native {

void keep_sanitizer_reports() {}

}  // namespace opensandbox::runtime::native
#endif
