#include "runtime/native/spawner/egress/enforcer_process.hpp"

#include "base/descriptor_limit.hpp"
#include "base/log.hpp"
#include "runtime/native/ground/confinement/capabilities.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/signals.hpp"
#include "runtime/native/ground/layer/overlay.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <grp.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr int kEnforcerDescriptor = 3;
constexpr uid_t kNobody = 65'534;
constexpr std::uint64_t kEptCapabilities = std::uint64_t{1} << CAP_NET_ADMIN;

/// In the child; nothing here may allocate.
[[noreturn]] void become_enforcer(int control, const char* directory) {
    // It ends with its socket.
    reset_signals({SIGTERM, SIGINT, SIGHUP, SIGPIPE});
    const bool placed = control == kEnforcerDescriptor
                            ? ::fcntl(control, F_SETFD, 0) == 0
                            : ::dup2(control, kEnforcerDescriptor) == kEnforcerDescriptor;
    if (!placed || ::chdir(directory) < 0) ::_exit(1);
    ::close_range(kEnforcerDescriptor + 1, ~0U, 0);
    char program[] = "opensandbox";
    char role[] = "enforcer";
    char* const arguments[] = {program, role, nullptr};
    char* const environment[] = {nullptr};
    ::execve("/proc/self/exe", arguments, environment);
    ::_exit(1);
}

/// Nobody else needs to write there, and nobody else may read it.
Status make_directory(const std::filesystem::path& directory) {
    if (::mkdir(directory.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + directory.string());
    }
    return check(::chown(directory.c_str(), kNobody, kNobody), "chown " + directory.string());
}

/// It reads what sandboxes send: all it keeps is power over the network, and its directory.
Status drop_privileges() {
    if (auto s = keep_capabilities_over_id_changes(); !s) return s;
    if (auto s = check(::setgroups(0, nullptr), "setgroups"); !s) return s;
    if (auto s = check(::setresgid(kNobody, kNobody, kNobody), "setgid"); !s) return s;
    if (auto s = check(::setresuid(kNobody, kNobody, kNobody), "setuid"); !s) return s;
    if (auto s = drop_capabilities(kEptCapabilities); !s) return s;
    if (auto s = check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs"); !s) return s;
    return check(::prctl(PR_SET_DUMPABLE, 0), "prctl dumpable");
}

}  // namespace

Result<pid_t> start_enforcer(UniqueFd control, const std::filesystem::path& directory) {
    if (auto s = make_directory(directory); !s) return s.error();
    const pid_t pid = ::fork();
    if (pid < 0) return last_error("fork");
    if (pid == 0) become_enforcer(control.get(), directory.c_str());
    return pid;
}

int enforcer_main(int, char**) {
    log::configure(log::Level::info, log::Format::text, 2);
    ::umask(077);
    ::prctl(PR_SET_NAME, "osb-enforcer");
    raise_descriptor_limit();
    if (auto s = drop_privileges(); !s) {
        log::error("the enforcer cannot serve", {{"reason", s.error().message()}});
        return 1;
    }
    return serve_enforcer(UniqueFd(kEnforcerDescriptor));
}

}  // namespace opensandbox::runtime::native
