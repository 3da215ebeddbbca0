#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/host/host_preparation.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

namespace opensandbox::runtime::native {

namespace {

constexpr std::uint64_t kShare = 4;

struct HostLimit {
    const char* file;
    std::uint64_t wanted;
};

constexpr std::array kHostLimits{
    // Open files. systemd does the same where it runs, and for the same reason.
    HostLimit{"/proc/sys/fs/file-max", INT64_MAX},
    // Processes and threads: the kernel's own highest.
    HostLimit{"/proc/sys/kernel/pid_max", 4'194'304},
    // Pseudo terminals, of which a sandbox has its most. The kernel's own highest.
    HostLimit{"/proc/sys/kernel/pty/max", 1'048'576},
};

std::uint64_t setting_in(const std::string& file) {
    return std::strtoull(read_file_or_empty(file).c_str(), nullptr, 10);
}

}  // namespace

void raise_limits_of_host() {
    for (const HostLimit& limit : kHostLimits) {
        const std::uint64_t present = setting_in(limit.file);
        if (present == 0 || present >= limit.wanted) continue;
        auto raised = write_file(limit.file, std::to_string(limit.wanted));
        if (raised) continue;
        log::warn("a limit of this host is shared by all sandboxes",
                  {{"limit", limit.file},
                   {"value", std::to_string(present)},
                   {"reason", raised.error().message()}});
    }
}

std::uint64_t share_of_processes() {
    const std::uint64_t pids = setting_in("/proc/sys/kernel/pid_max");
    const std::uint64_t threads = setting_in("/proc/sys/kernel/threads-max");
    const std::uint64_t all = std::min(pids, threads);
    return all - all / 8;
}

Status share_limits_of_user() {
    struct OfUser {
        const char* setting;
        const char* limit;
    };
    // The settings of this user namespace count what its users made below it.
    constexpr std::array kOfUsers{
        OfUser{"/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"},
        OfUser{"/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"},
    };
    for (const auto& [setting, limit] : kOfUsers) {
        const std::uint64_t all = setting_in(setting);
        // Older kernels count these for a user alone.
        if (all < kShare || setting_in(limit) == 0) continue;
        if (auto s = write_file(limit, std::to_string(all / kShare)); !s) return s;
    }
    for (const auto kind : {RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE}) {
        rlimit limit{};
        if (::getrlimit(kind, &limit) < 0) return last_error("read a limit of this user");
        if (limit.rlim_max == RLIM_INFINITY) continue;
        limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max / kShare);
        if (::setrlimit(kind, &limit) < 0) return last_error("share a limit of this user");
    }
    return {};
}

}  // namespace opensandbox::runtime::native
