#include "runtime/native/network/uplink.hpp"

#include "base/log.hpp"
#include "net/route_socket.hpp"
#include "runtime/native/ground/kernel/id_map.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/signals.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/network/host_addresses.hpp"
#include "runtime/native/network/pasta.hpp"
#include "version.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr int kChildDescriptor = 3;
constexpr timeval kPatience{.tv_sec = 15, .tv_usec = 0};
/// Resolver and enforcer run as kUplinkUser.
constexpr std::uint32_t kUplinkUser = 65'534;

/// Answers come one at a time, and soon.
Status make_blocking(int socket) {
    const int flags = ::fcntl(socket, F_GETFL);
    if (flags < 0 || ::fcntl(socket, F_SETFL, flags & ~O_NONBLOCK) < 0) return last_error("fcntl");
    return check(::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience),
                 "limit the wait for the uplink");
}

Result<ReceivedMessage> ask(int socket, std::string_view request,
                            std::span<const int> descriptors = {}) {
    if (auto s = send_message(socket, request, descriptors); !s) return s.error().within("uplink");
    auto answer = receive_message(socket);
    if (!answer) return answer.error().within("uplink");
    if (answer->closed) return Error(ErrorCode::unavailable, "the uplink's process is gone");
    if (answer->bytes.starts_with("error ")) {
        return Error(ErrorCode::unavailable, answer->bytes.substr(6));
    }
    return answer;
}

UniqueFd own_network_namespace() {
    return UniqueFd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
}

/// By a child, since there is no way back into the host's.
Result<UniqueFd> make_network_namespace() {
    auto pair = message_pair();
    if (!pair) return pair.error();
    const pid_t child = ::fork();
    if (child < 0) return last_error("fork");
    if (child == 0) {
        const bool made = ::unshare(CLONE_NEWNET) == 0;
        const UniqueFd own = own_network_namespace();
        if (made && own) {
            (void)send_message(pair->second.get(), "made", std::array{own.get()});
        }
        ::_exit(0);
    }
    pair->second.reset();
    auto made = receive_message(pair->first.get());
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (!made || made->descriptors.size() != 1) {
        return Error(ErrorCode::unsupported, "no network namespace can be made");
    }
    return std::move(made->descriptors.front());
}

/// A child of init's, for it outlives this process, in a role of its own.
Status launch(const SpawnerOptions& options, int control) {
    std::vector<std::string> words = options.to_arguments();
    words.insert(words.begin(), {"opensandbox", "uplink"});
    std::vector<char*> argv;
    for (std::string& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child < 0) return last_error("fork");
    if (child == 0) {
        ::setsid();
        if (::fork() != 0) ::_exit(0);
        reset_signals({SIGPIPE, SIGHUP});
        const bool placed = control == kChildDescriptor
                                ? ::fcntl(control, F_SETFD, 0) == 0
                                : ::dup2(control, kChildDescriptor) == kChildDescriptor;
        if (!placed) ::_exit(1);
        ::close_range(kChildDescriptor + 1, ~0U, 0);
        char* const environment[] = {nullptr};
        ::execve("/proc/self/exe", argv.data(), environment);
        ::_exit(127);
    }
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return {};
}

struct Found {
    UniqueFd socket;             ///< none: another process must be started
    UniqueFd network_namespace;  ///< none: there is none to be kept
};

/// The uplink's process of an earlier spawner; one of another version is ended, for its namespace.
Found find_earlier(const SpawnerOptions& options) {
    Found found;
    auto socket = connect_message_socket(uplink_socket_path(options));
    if (!socket || !make_blocking(socket->get())) return found;
    auto hello = receive_message(socket->get());
    if (!hello || hello->closed || hello->descriptors.size() != 1) return found;
    found.network_namespace = std::move(hello->descriptors.front());
    if (hello->bytes == kSpawnerProgram) {
        found.socket = std::move(*socket);
        return found;
    }
    (void)ask(socket->get(), "end");
    return found;
}

Status start_process(const SpawnerOptions& options, Found& found) {
    if (!found.network_namespace) {
        auto made = make_network_namespace();
        if (!made) return made.error();
        found.network_namespace = std::move(*made);
    }
    auto pair = message_pair();
    if (!pair) return pair.error();
    if (auto s = make_blocking(pair->first.get()); !s) return s;
    if (auto s = launch(options, pair->second.get()); !s) return s;
    pair->second.reset();
    auto begun = ask(pair->first.get(), "begin", std::array{found.network_namespace.get()});
    if (!begun) return begun.error();
    found.socket = std::move(pair->first);
    return {};
}

Status set_loopback_up() {
    auto routes = net::RouteSocket::open();
    if (!routes) return routes.error();
    auto loopback = routes->link_index("lo");
    if (!loopback) return loopback.error();
    return routes->set_up(*loopback);
}

}  // namespace

std::filesystem::path uplink_socket_path(const SpawnerOptions& options) {
    return options.state_directory / "uplink.sock";
}

Result<Uplink> Uplink::enter(const SpawnerOptions& options) {
    if (auto program = find_pasta(); !program) return program.error();
    if (ids_of_this_namespace() <= kUplinkUser) {
        return Error(ErrorCode::unsupported, "fewer than 65535 subordinate ids");
    }
    Uplink uplink;
    uplink.ipv6_ = has_default_route6(read_file_or_empty("/proc/net/ipv6_route"));
    Found found = find_earlier(options);
    if (!found.socket) {
        if (auto s = start_process(options, found); !s) return s.error();
    }
    uplink.socket_ = std::move(found.socket);
    auto entered = check(::setns(found.network_namespace.get(), CLONE_NEWNET),
                         "enter the network namespace of the sandboxes");
    if (!entered) {
        uplink.end();
        return entered.error();
    }
    if (auto s = set_loopback_up(); !s) log::warn("uplink", {{"reason", s.error().message()}});
    return uplink;
}

Result<UniqueFd> Uplink::listen(const std::string& host, std::uint16_t& port) const {
    auto answer = ask(socket_.get(), "listen " + host + " " + std::to_string(port));
    if (!answer) return answer.error();
    const std::string& text = answer->bytes;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
    if (read.ec != std::errc{} || answer->descriptors.size() != 1) {
        return Error(ErrorCode::protocol, "uplink: unexpected answer");
    }
    return std::move(answer->descriptors.front());
}

Status Uplink::start_resolver(const net::Ipv4Range& range, int control, int udp, int tcp) const {
    auto answer =
        ask(socket_.get(), "resolver " + range.to_string(), std::array{control, udp, tcp});
    if (!answer) return answer.error();
    return {};
}

void Uplink::end() {
    if (!socket_) return;
    (void)ask(socket_.get(), "end");
    socket_.reset();
}

}  // namespace opensandbox::runtime::native
