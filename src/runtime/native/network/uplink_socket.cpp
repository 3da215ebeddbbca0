#include "runtime/native/network/uplink_socket.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/signals.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/network/uplink.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr unsigned kLongestHold = 60;  // seconds

/// Until one spawner has it. Nothing of it is more than the kernel takes back at its end.
[[noreturn]] void hold(int listener, const SpawnerOptions& options) {
    reset_signals({SIGPIPE, SIGHUP});
    ::prctl(PR_SET_NAME, "osb-holder");
    ::alarm(kLongestHold);
    const UniqueFd own(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    while (own) {
        pollfd item{listener, POLLIN, 0};
        if (::poll(&item, 1, -1) < 0) continue;
        const UniqueFd spawner(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (!spawner) continue;
        if (!send_message(spawner.get(), "holder", std::array{own.get()})) continue;
        const auto request = receive_message(spawner.get());
        if (!request || request->bytes != "end") continue;
        ::unlink(uplink_socket_path(options).c_str());
        (void)send_message(spawner.get(), "ended");
        break;
    }
    ::_exit(0);
}

}  // namespace

Result<UniqueFd> listen_for_spawners(const SpawnerOptions& options) {
    return listen_message_socket(uplink_socket_path(options));
}

Status hold_network_namespace(const SpawnerOptions& options) {
    // Before the spawner goes, so that its successor finds it.
    auto listener = listen_for_spawners(options);
    if (!listener) return listener.error();
    const pid_t child = ::fork();
    if (child < 0) return last_error("fork");
    if (child == 0) {
        ::setsid();
        if (::fork() != 0) ::_exit(0);
        const int kept = ::dup2(listener->get(), STDERR_FILENO + 1);
        ::close_range(STDERR_FILENO + 2, ~0U, 0);
        hold(kept, options);
    }
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return {};
}

}  // namespace opensandbox::runtime::native
