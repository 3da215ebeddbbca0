#include "base/log.hpp"
#include "runtime/native/ground/event_loop.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/signals.hpp"
#include "runtime/native/ground/listening_socket.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/network/host_addresses.hpp"
#include "runtime/native/network/pasta.hpp"
#include "runtime/native/network/resolver_process.hpp"
#include "runtime/native/network/uplink.hpp"
#include "runtime/native/network/uplink_socket.hpp"
#include "runtime/native/records/journal.hpp"
#include "runtime/native/records/names.hpp"
#include "version.hpp"

#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <set>
#include <sstream>
#include <unistd.h>

namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

constexpr int kUplinkDescriptor = 3;
constexpr auto kTendInterval = 1s;
/// Without a spawner and without sandboxes it stays this long: a spawner that broke is replaced.
constexpr auto kIdleTime = 20s;
constexpr auto kSettleTime = 1s;
constexpr auto kFirstDelay = 100ms;
constexpr auto kLongestDelay = 30s;
/// pasta that lasted so long is no failure that repeats.
constexpr auto kTrialTime = 10s;

bool any_sandbox_lives(const SpawnerOptions& options) {
    std::error_code error;
    const auto journal = journal_directory(options.state_directory);
    for (const auto& file : std::filesystem::directory_iterator(journal, error)) {
        const auto entry = parse_entry(read_file_or_empty(file.path()));
        if (!entry || entry->exit || (!entry->boot.empty() && entry->boot != boot_id())) continue;
        if (process_start_time(entry->pid) == entry->start_time) return true;
    }
    return false;
}

bool same_user(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == ::geteuid();
}

/// Runs `work` in a child that is in that network namespace, and brings back what it said.
Status in_namespace(int network_namespace, const std::function<Status()>& work) {
    auto pair = message_pair();
    if (!pair) return pair.error();
    const pid_t child = ::fork();
    if (child < 0) return last_error("fork");
    if (child == 0) {
        Status status = check(::setns(network_namespace, CLONE_NEWNET), "setns");
        if (status) status = work();
        (void)send_message(pair->second.get(), status ? "done" : status.error().message());
        ::_exit(0);
    }
    pair->second.reset();
    auto answer = receive_message(pair->first.get());
    if (!answer) return answer.error();
    if (answer->bytes == "done") return {};
    return Error(ErrorCode::unavailable, answer->closed ? "it ended" : answer->bytes);
}

class UplinkService {
  public:
    UplinkService(SpawnerOptions options, std::unique_ptr<EventLoop> loop)
        : options_(std::move(options)),
          loop_(std::move(loop)),
          tag_(tag_of(options_.state_directory)) {}
    ~UplinkService() { end_pasta(); }
    UplinkService(const UplinkService&) = delete;
    UplinkService& operator=(const UplinkService&) = delete;

    Status begin(UniqueFd spawner);
    void run();

  private:
    void take(UniqueFd spawner);
    void on_connect();
    void on_message();
    void answer(const ReceivedMessage& request);
    void listen(std::istringstream& words);
    void start_resolver(std::istringstream& words, const std::vector<UniqueFd>& sockets);
    void reply(std::string_view text, std::span<const int> descriptors = {});

    Status name_namespace();
    Status refuse_host();
    void start_pasta();
    void on_pasta_end();
    void end_pasta();
    void try_again();
    void on_address_change();

    SpawnerOptions options_;
    std::unique_ptr<EventLoop> loop_;
    std::string tag_;
    UniqueFd namespace_;
    UniqueFd listener_;
    UniqueFd spawner_;
    UniqueFd addresses_watch_;
    std::optional<std::set<boost::asio::ip::address>> refused_;
    ClonedChild pasta_;
    std::string said_;  ///< why there is no pasta, told once
    EventLoop::Clock::duration delay_ = kFirstDelay;
    EventLoop::Clock::time_point needed_at_ = EventLoop::Clock::now();
    bool retrying_ = false;
    bool ended_ = false;
    EventLoop::Watch accept_, messages_, changes_, pasta_end_;
};

Status UplinkService::begin(UniqueFd spawner) {
    auto first = receive_message(spawner.get());
    if (!first) return first.error();
    if (first->bytes != "begin" || first->descriptors.size() != 1) {
        return Error(ErrorCode::protocol, "unexpected beginning");
    }
    spawner_ = std::move(spawner);
    namespace_ = std::move(first->descriptors.front());
    if (auto s = name_namespace(); !s) return s;
    auto watch = watch_host_addresses();
    if (!watch) return watch.error();
    addresses_watch_ = std::move(*watch);
    if (auto s = refuse_host(); !s) return s;
    auto listener = listen_for_spawners(options_);
    if (!listener) return listener.error();
    listener_ = std::move(*listener);
    accept_ = loop_->watch(listener_.get(), EPOLLIN, [this](auto) { on_connect(); });
    changes_ = loop_->watch(addresses_watch_.get(), EPOLLIN, [this](auto) { on_address_change(); });
    start_pasta();
    reply("begun");
    take(std::move(spawner_));
    return {};
}

void UplinkService::run() {
    auto tended_at = EventLoop::Clock::now();
    while (!ended_) {
        loop_->run_once(kTendInterval);
        const auto now = EventLoop::Clock::now();
        if (now - tended_at < kTendInterval) continue;
        tended_at = now;
        if (spawner_ || any_sandbox_lives(options_)) needed_at_ = now;
        if (now - needed_at_ > kIdleTime) ended_ = true;
    }
    accept_.reset();
    ::unlink(uplink_socket_path(options_).c_str());
    end_pasta();
    // Whoever waits for the end sees that it came.
    if (spawner_) reply("ended");
}

void UplinkService::take(UniqueFd spawner) {
    messages_.reset();
    spawner_ = std::move(spawner);
    messages_ = loop_->watch(spawner_.get(), EPOLLIN, [this](auto) { on_message(); });
}

void UplinkService::on_connect() {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd || !same_user(fd.get())) return;
    // There is one spawner: this is its successor.
    take(std::move(fd));
    reply(kSpawnerProgram, std::array{namespace_.get()});
}

void UplinkService::on_message() {
    auto request = receive_message(spawner_.get());
    if (request && !request->closed) return answer(*request);
    messages_.reset();
    spawner_.reset();
    needed_at_ = EventLoop::Clock::now();
}

void UplinkService::answer(const ReceivedMessage& request) {
    std::istringstream words(request.bytes);
    std::string verb;
    words >> verb;
    if (verb == "listen") return listen(words);
    if (verb == "resolver") return start_resolver(words, request.descriptors);
    if (verb == "end") {
        ended_ = true;
        return;
    }
    reply("error unknown request");
}

void UplinkService::listen(std::istringstream& words) {
    std::string host;
    std::uint16_t port = 0;
    words >> host >> port;
    auto made = listen_on(host, port);
    if (!made) return reply("error " + made.error().message());
    reply(std::to_string(port), std::array{made->get()});
}

void UplinkService::start_resolver(std::istringstream& words,
                                   const std::vector<UniqueFd>& sockets) {
    std::string text;
    words >> text;
    auto range = net::Ipv4Range::parse(text);
    if (!range || sockets.size() != 3) return reply("error resolver: unexpected request");
    const pid_t child = ::fork();
    if (child < 0) return reply("error " + last_error("fork").message());
    if (child == 0) {
        ResolverSockets own;
        own.udp.reset(::fcntl(sockets[1].get(), F_DUPFD_CLOEXEC, 0));
        own.tcp.reset(::fcntl(sockets[2].get(), F_DUPFD_CLOEXEC, 0));
        run_resolver(own, *range, UniqueFd(::fcntl(sockets[0].get(), F_DUPFD_CLOEXEC, 0)));
    }
    reply("started");
}

void UplinkService::reply(std::string_view text, std::span<const int> descriptors) {
    if (auto s = send_message(spawner_.get(), text, descriptors); !s) {
        log::warn("the spawner does not take an answer", {{"reason", s.error().message()}});
    }
}

/// pasta opens it by a path, and may look at no process for one. Seen by this process and its
/// children only.
Status UplinkService::name_namespace() {
    if (auto s = check(::unshare(CLONE_NEWNS), "unshare mounts"); !s) return s;
    if (auto s = check(::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr), "mount / slave");
        !s) {
        return s;
    }
    const auto path = options_.own_directory() / "network";
    if (!UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600))) {
        return last_error("make " + path.string());
    }
    const std::string from = "/proc/self/fd/" + std::to_string(namespace_.get());
    return check(::mount(from.c_str(), path.c_str(), nullptr, MS_BIND, nullptr),
                 "name the network namespace");
}

/// Nothing is sent before this succeeded once; later it holds what held before.
Status UplinkService::refuse_host() {
    auto addresses = host_addresses();
    if (!addresses) return addresses.error();
    if (refused_ == *addresses) return {};
    auto done = in_namespace(namespace_.get(), [&] {
        return install_uplink_firewall("opensandbox_" + tag_ + "_uplink", *addresses);
    });
    if (done) refused_ = std::move(*addresses);
    return done;
}

void UplinkService::on_address_change() {
    forget_address_changes(addresses_watch_.get());
    if (auto s = refuse_host(); !s) {
        log::error("the host's new addresses are not refused: sandboxes are cut off",
                   {{"reason", s.error().message()}});
        end_pasta();
        return try_again();
    }
    // A host that has an address again has a way out again, or will in a moment.
    if (pasta_.pidfd) return;
    start_pasta();
    loop_->run_after(kSettleTime, [this] { start_pasta(); });
}

void UplinkService::start_pasta() {
    if (ended_ || pasta_.pidfd) return;
    PastaSettings settings;
    settings.network_namespace = options_.own_directory() / "network";
    settings.ipv4 = has_default_route(read_file_or_empty("/proc/net/route"));
    settings.ipv6 = has_default_route6(read_file_or_empty("/proc/net/ipv6_route"));
    settings.tag = tag_;
    Status ready = refuse_host();
    auto program = find_pasta();
    if (ready && !program) ready = program.error();
    if (ready && !settings.ipv4 && !settings.ipv6) {
        ready = Error(ErrorCode::unavailable, "the host has no default route");
    }
    if (ready) {
        settings.program = *program;
        auto started = native::start_pasta(settings);
        if (started)
            pasta_ = std::move(*started);
        else
            ready = started.error();
    }
    if (!ready) {
        if (std::exchange(said_, ready.error().message()) != ready.error().message()) {
            log::warn("sandboxes reach nothing beyond this host", {{"reason", said_}});
        }
        return try_again();
    }
    said_.clear();
    log::info("sandboxes reach the world by pasta", {{"pid", pasta_.pid}, {"ipv6", settings.ipv6}});
    pasta_end_ = loop_->watch(pasta_.pidfd.get(), EPOLLIN, [this](auto) { on_pasta_end(); });
    loop_->run_after(kTrialTime, [this, pid = pasta_.pid] {
        if (pasta_.pid == pid) delay_ = kFirstDelay;
    });
}

void UplinkService::on_pasta_end() {
    log::error("pasta ended; another takes its place", {{"pid", pasta_.pid}});
    end_pasta();
    try_again();
}

void UplinkService::end_pasta() {
    pasta_end_.reset();
    if (pasta_.pidfd) (void)signal_process(pasta_.pidfd.get(), SIGKILL);
    pasta_ = {};
}

void UplinkService::try_again() {
    if (std::exchange(retrying_, true)) return;
    loop_->run_after(delay_, [this] {
        retrying_ = false;
        start_pasta();
    });
    delay_ = std::min<EventLoop::Clock::duration>(delay_ * 2, kLongestDelay);
}

}  // namespace

int serve_uplink(const SpawnerOptions& options, UniqueFd first) {
    auto loop = EventLoop::make();
    if (!loop) return 1;
    const int socket = first.get();
    UplinkService service(options, std::move(*loop));
    if (auto s = service.begin(std::move(first)); !s) {
        log::error("the uplink cannot serve", {{"reason", s.error().message()}});
        (void)send_message(socket, "error " + s.error().message());
        return 1;
    }
    service.run();
    return 0;
}

int uplink_main(int argc, char** argv) {
    log::configure(log::Level::info, log::Format::text, 2);
    ::prctl(PR_SET_NAME, "osb-uplink");
    ::prctl(PR_SET_DUMPABLE, 0);
    ::umask(077);
    (void)::fcntl(kUplinkDescriptor, F_SETFD, FD_CLOEXEC);
    // Children are not asked how they ended.
    ::signal(SIGCHLD, SIG_IGN);
    auto options = SpawnerOptions::parse({argv + 1, argv + argc});
    if (!options) {
        log::error("uplink", {{"reason", options.error().message()}});
        return 2;
    }
    if (::chdir("/") < 0) return 1;
    return serve_uplink(*options, UniqueFd(kUplinkDescriptor));
}

}  // namespace opensandbox::runtime::native
