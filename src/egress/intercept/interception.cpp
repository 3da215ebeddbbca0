#include "egress/intercept/interception.hpp"

#include "base/scope_exit.hpp"
#include "egress/intercept/core/host_name.hpp"
#include "egress/intercept/core/selection.hpp"
#include "egress/intercept/http1/relay.hpp"
#include "egress/intercept/http2/relay.hpp"
#include "egress/intercept/pass_through.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>

namespace opensandbox::egress {
namespace {

constexpr std::size_t kPiece = 4 * 1024;

// RFC 8446 section 6.2.
constexpr unsigned char kAccessDenied = 49;
constexpr unsigned char kDecodeError = 50;
constexpr unsigned char kUnrecognizedName = 112;
constexpr unsigned char kNoProtocol = 120;

constexpr const char* kHidden = "the hello may hide a name (ECH)";

constexpr std::string_view kHttp2 = "h2";
constexpr std::string_view kHttp1 = "http/1.1";

bool contains(const std::vector<std::string>& list, std::string_view wanted) {
    return std::find(list.begin(), list.end(), wanted) != list.end();
}

/// Of what a client offers, what we can read.
std::vector<std::string> readable(const std::vector<std::string>& offered) {
    std::vector<std::string> found;
    for (const std::string& name : offered) {
        if ((name == kHttp2 || name == kHttp1) && !contains(found, name)) found.push_back(name);
    }
    return found;
}

/// What HTTP/2 begins with where nothing was agreed on before (RFC 9113 section 3.3). No request
/// of HTTP/1 has this method.
constexpr std::string_view kPreface = "PRI";

/// As far as it can be told by now. What is no request must not wait for the end of a head.
bool begins_http(std::string_view bytes) {
    // Empty lines may come before a request.
    bytes.remove_prefix(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
    if (bytes.empty()) return true;
    if (bytes.front() < 'A' || bytes.front() > 'Z') return false;
    const std::size_t end = bytes.find('\n');
    return end == std::string_view::npos || bytes.substr(0, end).find(" HTTP/") != bytes.npos;
}

}  // namespace

void InterceptedConnection::record(Outcome outcome, std::string_view reason) {
    if (all_.parties.audit == nullptr) return;
    ConnectionRecord record;
    record.client = site_.client;
    record.target = site_.target;
    record.scheme = site_.tls ? "https" : "http";
    record.host = site_.host;
    record.outcome = outcome;
    record.reason = reason;
    record.selection = std::exchange(selection_, std::string_view());
    all_.parties.audit->on_connection(record);
}

/// Ends the connection in a way that no client takes for an answer.
void InterceptedConnection::reset() {
    linger now{1, 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    boost::system::error_code ignored;
    socket_.close(ignored);
}

/// Answers a hello with a fatal alert, which clients report by its name.
void InterceptedConnection::deny(std::string_view reason, unsigned char alert) {
    record(Outcome::denied, reason);
    const std::array<unsigned char, 7> bytes{21, 3, 3, 0, 2, 2, alert};
    ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    boost::system::error_code ignored;
    socket_.shutdown(net::StreamSocket::shutdown_send, ignored);
    socket_.close(ignored);
}

/// Reads until the first bytes tell what this is. For TLS: the whole hello.
Awaitable<InterceptedConnection::Start> InterceptedConnection::read_start() {
    auto executor = co_await asio::this_coro::executor;
    // On the socket itself: this frame may not outlive the deadline's action otherwise.
    auto expired = std::make_shared<bool>(false);
    net::Deadline deadline(executor, all_.settings.hello_timeout, [this, expired] {
        *expired = true;
        boost::system::error_code ignored;
        socket_.cancel(ignored);
    });
    while (true) {
        auto [failure] =
            co_await socket_.async_wait(net::StreamSocket::wait_read, kAsTupleAwaitable);
        if (failure || *expired) co_return Start::neither;
        std::size_t held = received_.size();
        received_.resize(held + kPiece);
        ssize_t count =
            ::recv(socket_.native_handle(), received_.data() + held, kPiece, MSG_DONTWAIT);
        bool later = count < 0 && (errno == EAGAIN || errno == EINTR);
        received_.resize(held + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (later) continue;
        if (count <= 0) co_return Start::neither;
        switch (parser_.parse(received_)) {
            case ClientHelloParser::State::complete: co_return Start::tls;
            case ClientHelloParser::State::incomplete: break;
            case ClientHelloParser::State::malformed: co_return Start::tls;
            case ClientHelloParser::State::not_tls:
                if (received_.size() < kPreface.size() &&
                    kPreface.substr(0, received_.size()) == received_) {
                    break;
                }
                co_return begins_http(received_) ? Start::http : Start::neither;
        }
    }
}

/// Who it is and where to; the reason when that cannot be told.
std::optional<std::string> InterceptedConnection::name_target() {
    int fd = socket_.native_handle();
    auto client = all_.parties.client_of(fd);
    if (!client) return client.error().message();
    site_.client = *client;
    auto target = all_.parties.original_destination(fd);
    if (!target) return target.error().message();
    site_.target = *target;
    return std::nullopt;
}

TargetVerdict InterceptedConnection::judge_hello() {
    using Action = TargetVerdict::Action;
    InterceptGate& gate = *all_.parties.gate;
    try {
        TargetVerdict verdict = name_.empty()
                                    ? gate.judge_address(site_.client, site_.target)
                                    : gate.judge_name(site_.client, name_, site_.target.port());
        if (verdict.action == Action::deny) return verdict;
        if (!name_.empty() && !gate.leads_to(site_.client, name_, site_.target)) {
            return {Action::deny, "the name does not stand at this address"};
        }
        const Interest interest = gate.interest(site_.client, name_, site_.target.port());
        if (interest != Interest::any) return select(std::move(verdict), interest);
        EncryptedHello policy = all_.settings.encrypted_hello;
        bool hidden = parser_.hello().encrypted && policy != EncryptedHello::pass;
        bool unseen = verdict.action == Action::pass_through;
        if (hidden && (unseen || policy == EncryptedHello::deny)) {
            return {Action::deny, kHidden};
        }
        return verdict;
    } catch (const std::exception&) {
        return {Action::deny, "the connection could not be judged"};
    }
}

/// Of what the policy allows, only what a credential may go into is read. A name that may be hidden
/// is not read under another's, and gets no credential.
TargetVerdict InterceptedConnection::select(TargetVerdict verdict, Interest interest) {
    using Action = TargetVerdict::Action;
    const bool hidden = parser_.hello().encrypted;
    if (hidden && all_.settings.encrypted_hello == EncryptedHello::deny) {
        return {Action::deny, kHidden};
    }
    selection_ = hidden                                   ? selection::kEch
                 : name_.empty()                          ? selection::kNoSni
                 : verdict.action == Action::pass_through ? selection::kStaticIgnore
                 : interest == Interest::unknown          ? selection::kBootstrapping
                 : interest == Interest::unbound          ? selection::kNoBindingHost
                                                          : selection::kBindingHost;
    if (selection_ == selection::kBindingHost) return verdict;
    if (selection_ == selection::kBootstrapping) {
        return {Action::deny, "bootstrapping: the credential vault has to be written again"};
    }
    return {Action::pass_through, std::string(selection_)};
}

Awaitable<void> InterceptedConnection::run() {
    if (auto unknown = name_target()) {
        record(Outcome::failed, *unknown);
        reset();
        co_return;
    }
    if (all_.loads[site_.client].connections >= all_.settings.max_connections) {
        record(Outcome::denied, "too many connections");
        reset();
        co_return;
    }
    ++all_.loads[site_.client].connections;
    ScopeExit leave([this] {
        auto load = all_.loads.find(site_.client);
        if (--load->second.connections == 0) all_.loads.erase(load);
    });
    Start start = co_await read_start();
    if (start == Start::neither || all_.closed) {
        record(Outcome::denied, "neither TLS nor HTTP");
        reset();
    } else if (start == Start::http) {
        co_await run_plain();
    } else {
        co_await run_tls();
    }
}

Awaitable<void> InterceptedConnection::run_tls() {
    site_.tls = true;
    const ClientHello& hello = parser_.hello();
    if (!parser_.error().empty()) {
        deny(parser_.error(), kDecodeError);
        co_return;
    }
    if (hello.server_name) {
        auto name = normal_host_name(*hello.server_name);
        if (!name) {
            deny("the server name is none", kUnrecognizedName);
            co_return;
        }
        name_ = *name;
    }
    site_.host_is_address = name_.empty();
    site_.host = name_.empty() ? site_.target.address().to_string() : name_;
    TargetVerdict verdict = judge_hello();
    if (verdict.action == TargetVerdict::Action::deny) {
        deny(verdict.rule, kAccessDenied);
        co_return;
    }
    if (verdict.action == TargetVerdict::Action::pass_through) {
        record(Outcome::passed_through, verdict.rule);
        co_await run_pass_through();
        co_return;
    }
    if (selection_.empty()) {
        co_await run_decrypted(std::move(verdict.rule));
        co_return;
    }
    std::size_t& decrypted = all_.loads[site_.client].decrypted;
    if (decrypted >= all_.settings.max_decrypted) {
        selection_ = selection::kRegistryExhausted;
        record(Outcome::denied, selection::kRegistryExhausted);
        reset();
        co_return;
    }
    ++decrypted;
    ScopeExit leave([&decrypted] { --decrypted; });
    co_await run_decrypted(std::move(verdict.rule));
}

Awaitable<void> InterceptedConnection::run_decrypted(std::string rule) {
    const ClientHello& hello = parser_.hello();
    if (!hello.protocols.empty() && readable(hello.protocols).empty()) {
        deny("the client speaks no HTTP", kNoProtocol);
        co_return;
    }
    UpstreamConnection upstream = co_await open_upstream();
    if (upstream.certificate_requested && !upstream.stream) {
        bool pass =
            all_.settings.upstream.on_certificate_request == CertificateRequest::pass_through;
        EncryptedHello policy = all_.settings.encrypted_hello;
        if (pass && (!hello.encrypted || policy == EncryptedHello::pass)) {
            record(Outcome::passed_through, "the server asks for a client's certificate");
            co_await run_pass_through();
            co_return;
        }
        if (all_.settings.upstream.on_certificate_request != CertificateRequest::decline) {
            deny("the server asks for a client's certificate", kAccessDenied);
            co_return;
        }
    }
    record(upstream.stream ? Outcome::intercepted : Outcome::failed,
           upstream.stream ? std::string_view(rule) : upstream.failure);
    co_await serve(std::move(upstream));
}

Awaitable<void> InterceptedConnection::run_pass_through() {
    auto dialed = co_await all_.dialer.dial(site_.client, site_.target, name_);
    // The policy may have changed meanwhile, and nothing is judged from here on.
    bool denied = judge_hello().action == TargetVerdict::Action::deny;
    if (!dialed || all_.closed || denied) {
        reset();
        co_return;
    }
    auto client = net::make_stream(std::move(socket_));
    auto upstream = net::make_stream(std::move(*dialed));
    WatchedTarget target = site_.watched();
    target.decrypted = false;
    co_await pass_through(all_.watch, std::move(target), all_.settings.limits.idle_timeout,
                          std::move(client), std::move(received_), std::move(upstream));
}

/// Without a stream the result says why.
Awaitable<UpstreamConnection> InterceptedConnection::open_upstream() {
    auto dialed = co_await all_.dialer.dial(site_.client, site_.target, name_);
    if (!dialed) {
        UpstreamConnection failed;
        failed.failure = dialed.error().message();
        co_return failed;
    }
    UpstreamTarget target;
    target.client = site_.client;
    target.host = site_.host;
    target.port = site_.target.port();
    target.protocols = readable(parser_.hello().protocols);
    auto made = co_await all_.upstream_tls->secure(std::move(*dialed), std::move(target));
    co_return made;
}

/// Becomes the server for the client. Without an upstream the client gets to read why.
Awaitable<void> InterceptedConnection::serve(UpstreamConnection upstream) {
    bool offers = !parser_.hello().protocols.empty();
    ClientFace face;
    face.client = site_.client;
    face.host = site_.host;
    face.protocol = upstream.protocol;
    if (offers && !upstream.stream) {
        bool old = contains(parser_.hello().protocols, kHttp1);
        face.protocol = old ? kHttp1 : kHttp2;
    }
    face.received = std::exchange(received_, std::string());
    std::string protocol = face.protocol;
    auto client = co_await all_.client_tls->accept(std::move(socket_), std::move(face),
                                                   all_.settings.handshake_timeout);
    if (!client || all_.closed) {
        if (!client) record(Outcome::failed, client.error().message());
        co_return;
    }
    site_.upstream = upstream.session;
    RequestGuard guard(all_.rules, site_);
    ConnectUpstream connect =
        [&upstream](std::string) -> Awaitable<Result<std::unique_ptr<net::Stream>>> {
        if (!upstream.stream) co_return Error(ErrorCode::bad_gateway, upstream.failure);
        co_return std::move(upstream.stream);
    };
    co_await relay(guard, protocol == kHttp2, std::move(*client), std::move(connect));
}

Awaitable<void> InterceptedConnection::relay(RequestGuard& guard, bool http2,
                                             std::unique_ptr<net::Stream> client,
                                             ConnectUpstream connect) {
    RelayLimits& limits = all_.settings.limits;
    ClientLoad& load = all_.loads[guard.site().client];
    if (http2) {
        co_await relay_http2(guard, limits, all_.watch, load, std::move(client),
                             std::move(received_), std::move(connect));
    } else {
        co_await relay_http1(guard, limits, all_.watch, std::move(client), std::move(received_),
                             std::move(connect));
    }
}

Awaitable<void> InterceptedConnection::run_plain() {
    record(Outcome::intercepted, "");
    auto client = net::make_stream(std::move(socket_));
    RequestGuard guard(all_.rules, site_);
    ConnectUpstream connect =
        [this](std::string host) -> Awaitable<Result<std::unique_ptr<net::Stream>>> {
        auto dialed = co_await all_.dialer.dial(site_.client, site_.target, std::move(host));
        if (!dialed) co_return dialed.error();
        co_return net::make_stream(std::move(*dialed));
    };
    bool http2 = std::string_view(received_).substr(0, kPreface.size()) == kPreface;
    co_await relay(guard, http2, std::move(client), std::move(connect));
}

}  // namespace opensandbox::egress
