#include "runtime/native/spawner/egress/egress_guard.hpp"

#include "base/log.hpp"
#include "egress/settings/names.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/spawner/egress/enforcer_process.hpp"

#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

constexpr auto kRestartDelay = 100ms;
/// Of the packet filter's log, for refusals; another than a sidecar's in its own namespace.
constexpr std::uint16_t kFirstLogGroup = 1000;
constexpr std::uint16_t kLogGroups = 60'000;

/// Servers that share a host read each their own.
std::uint16_t log_group(const std::string& tag) {
    const auto number = std::strtoul(tag.c_str(), nullptr, 16);
    return static_cast<std::uint16_t>(kFirstLogGroup + number % kLogGroups);
}

EnforcerStart start_message(const Host& host, const Environment& settings) {
    EnforcerStart start;
    start.table = host.egress_table();
    start.gateway4 = host.gateway().to_string();
    if (host.range6) start.gateway6 = host.gateway6().to_string();
    start.dns_port = host.egress_sockets.dns_port;
    start.intercept_port = host.egress_sockets.intercept_port;
    start.log_group = log_group(host.tag);
    start.settings = settings;
    // The host's own resolvers, which may be on its loopback, are reached from there alone.
    constexpr std::string_view kUpstream = egress::setting::kDnsUpstream;
    const bool chosen = std::ranges::any_of(settings, [&](const auto& item) {
        return item.first == kUpstream && !item.second.empty();
    });
    if (host.uplink && host.resolver_sockets.port != 0 && !chosen) {
        start.settings.emplace_back(
            kUpstream, start.gateway4 + ":" + std::to_string(host.resolver_sockets.port));
    }
    return start;
}

}  // namespace

EgressGuard::EgressGuard(EventLoop& loop, const Host& host)
    : loop_(&loop), host_(&host), records_(host.options.own_directory() / "guards") {}

EgressGuard::~EgressGuard() {
    end_process();
}

std::filesystem::path EgressGuard::directory() const {
    return host_->options.state_directory / "egress";
}

void EgressGuard::configure(Environment settings) {
    if (settings == settings_) return;
    settings_ = std::move(settings);
    if (socket_) {
        log::info("egress control has new settings; another enforcer takes over");
        restart();
    } else if (!guarded_.empty()) {
        start();
    }
}

void EgressGuard::guard(GuardRecord record, Guarded done) {
    if (!host_->network()) {
        return done(Error(ErrorCode::unsupported, "SANDBOX::INVALID_PARAMETER",
                          "networkPolicy: sandboxes of this server have their loopback only; "
                          "opensandbox doctor tells why."));
    }
    if (auto s = records_.write(record); !s) return done(s.error());
    const std::string id = record.id;
    const GuardRecord& kept = guarded_.insert_or_assign(id, std::move(record)).first->second;
    if (socket_) return ask(kept, std::move(done));
    // One that is started is told of all that are to be guarded.
    waiting_.emplace(++last_request_, Waiting{id, std::move(done)});
    start();
}

void EgressGuard::release(const std::string& id) {
    if (guarded_.contains(id)) forget(id);
}

/// Also what an enforcer refused to guard: its link may be refused what it was before.
void EgressGuard::forget(const std::string& id) {
    guarded_.erase(id);
    records_.remove(id);
    if (outgoing_) outgoing_->send(encode(ReleaseRequest{id}));
}

void EgressGuard::adopt(const std::function<bool(const std::string& id)>& lives) {
    for (GuardRecord& record : records_.read_all()) {
        if (lives(record.id))
            guarded_.insert_or_assign(record.id, std::move(record));
        else
            records_.remove(record.id);
    }
}

std::string EgressGuard::token(const std::string& id) const {
    const auto found = guarded_.find(id);
    return found == guarded_.end() ? std::string() : found->second.egress.token;
}

EgressTerms EgressGuard::terms(const std::string& id) const {
    const auto found = guarded_.find(id);
    if (found == guarded_.end()) return {};
    EgressTerms terms = found->second.egress;
    terms.token.clear();
    // What its API made of it.
    const std::string changed = read_file_or_empty(directory() / id / "policy.json");
    if (!changed.empty()) terms.policy = changed;
    return terms;
}

void EgressGuard::start() {
    if (socket_ || restarting_ || !settings_) return;
    if (auto s = launch(); !s) {
        log::error("egress control cannot start", {{"reason", s.error().message()}});
        fail_waiting(s.error());
        end_process();
        restart();
    }
}

/// Tells a new enforcer all that it has to know.
Status EgressGuard::launch() {
    auto pair = message_pair();
    if (!pair) return pair.error();
    auto pid = start_enforcer(std::move(pair->second), directory());
    if (!pid) return pid.error();
    pid_ = *pid;
    socket_ = std::move(pair->first);
    const auto descriptors = host_->egress_sockets.descriptors();
    const std::string first = encode(start_message(*host_, *settings_));
    if (auto s = send_message(socket_.get(), first, descriptors); !s) return s;
    (void)::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    outgoing_ = std::make_unique<MessageQueue>(*loop_, socket_.get(), [this] { restart(); });
    watch_ = loop_->watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_message(); });
    // Those whose guarding somebody waits for are asked for with the rest.
    std::map<std::string, Guarded> wanted;
    for (auto& [number, waiting] : std::exchange(waiting_, {}))
        wanted[waiting.id] = std::move(waiting.done);
    for (const auto& [id, record] : guarded_)
        ask(record, std::move(wanted[id]));
    if (outgoing_) outgoing_->send(encode(SettleRequest{}));
    return {};
}

void EgressGuard::ask(const GuardRecord& record, Guarded done) {
    GuardRequest request;
    request.request = ++last_request_;
    request.id = record.id;
    request.link = record.link;
    request.addresses = record.addresses;
    request.egress = record.egress;
    waiting_.emplace(request.request, Waiting{record.id, std::move(done)});
    // One that broke meanwhile is replaced, and its successor asked.
    if (outgoing_) outgoing_->send(encode(request));
}

void EgressGuard::on_message() {
    auto received = receive_message(socket_.get());
    if (!received && received.error().code() == ErrorCode::resource_exhausted) return;
    auto message =
        received && !received->closed ? decode(received->bytes) : Result<Message>(Error());
    if (!message) {
        log::error("the enforcer of egress control ended; another takes its place",
                   {{"pid", pid_}});
        return restart();
    }
    if (auto* guarded = std::get_if<TextReply>(&*message)) {
        answer(guarded->request, std::move(guarded->text));
    } else if (const auto* failed = std::get_if<FailedReply>(&*message)) {
        if (failed->request == 0) return fail_waiting(failed->error);
        answer(failed->request, failed->error);
    }
}

void EgressGuard::answer(std::uint64_t request, Result<std::string> authority) {
    const auto found = waiting_.find(request);
    if (found == waiting_.end()) return;
    Waiting waiting = std::move(found->second);
    waiting_.erase(found);
    if (!authority && !waiting.done) {
        // The packet filter goes on refusing all that it was to allow.
        log::error("a sandbox is cut off: egress control cannot take it over",
                   {{"sandbox", waiting.id}, {"reason", authority.error().message()}});
        return;
    }
    if (!authority) forget(waiting.id);
    if (waiting.done) waiting.done(std::move(authority));
}

void EgressGuard::fail_waiting(const Error& error) {
    for (auto& [number, waiting] : std::exchange(waiting_, {})) {
        if (!waiting.done) continue;
        forget(waiting.id);
        waiting.done(error);
    }
}

/// Whoever waits is asked for again.
void EgressGuard::restart() {
    end_process();
    if (std::exchange(restarting_, true)) return;
    loop_->run_after(kRestartDelay, [this] {
        restarting_ = false;
        if (!guarded_.empty()) start();
    });
}

void EgressGuard::end_process() {
    watch_.reset();
    outgoing_.reset();
    socket_.reset();
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
}

}  // namespace opensandbox::runtime::native
