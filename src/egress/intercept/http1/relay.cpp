#include "egress/intercept/http1/relay.hpp"

#include "egress/intercept/core/message_fields.hpp"
#include "egress/intercept/http1/exchange.hpp"
#include "http/serialize.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace http1 {
namespace {

using http::Framing;

constexpr std::size_t kFill = 16 * 1024;
constexpr std::chrono::seconds kDrainTime{2};
constexpr std::size_t kDrainBytes = 1024 * 1024;

/// The half that reads requests.
class Requests {
  public:
    Requests(std::shared_ptr<Connection> connection, ConnectUpstream connect)
        : connection_(std::move(connection)), at_(*connection_), connect_(std::move(connect)) {}

    Awaitable<void> run();

  private:
    Awaitable<HeadEnd> next_head(std::size_t& size);
    Awaitable<bool> settle();
    Awaitable<bool> take(std::size_t head_size);
    Awaitable<bool> send(http::RequestHead head, Framing framing, Exchange exchange);
    Awaitable<bool> send_body(Framing framing);
    Awaitable<bool> rewrite(http::RequestHead& head, Framing& framing, std::string& body,
                            Exchange& exchange, bool expects);
    Awaitable<bool> refuse(int status, std::string text, bool keep, bool with_body = true);
    Awaitable<bool> open_upstream();
    Awaitable<void> tunnel();
    Awaitable<void> drain();
    void start_responses();

    std::shared_ptr<Connection> connection_;
    Connection& at_;
    ConnectUpstream connect_;
    std::string rewritten_;
};

/// Reads until a whole head is there and no exchange is in flight. Meanwhile a client that goes
/// away is noticed.
Awaitable<HeadEnd> Requests::next_head(std::size_t& size) {
    http::HeadScanner scanner;
    http::InputBuffer& buffer = at_.client.buffer;
    bool begun = false;
    while (!at_.closed) {
        if (!at_.exchange && !begun) buffer.consume(http::leading_empty_lines(buffer.view()));
        if (!buffer.empty() && !at_.exchange) {
            if (!begun) at_.lease.due_in(at_.limits.head_timeout);
            begun = true;
            auto state = scanner.scan(buffer.view());
            size = scanner.size();
            if (state == http::HeadScanner::State::malformed) co_return HeadEnd::malformed;
            if (size > at_.limits.max_header) co_return HeadEnd::too_large;
            if (state == http::HeadScanner::State::complete) co_return HeadEnd::complete;
        }
        if (at_.exchange && !buffer.empty()) {
            // What comes ahead of its time is kept until the answer is out.
            bool settled = co_await settle();
            if (!settled) break;
            if (at_.tunnel) co_return HeadEnd::complete;
            continue;
        }
        if (buffer.empty()) {
            buffer.release();
            co_await at_.client.stream->wait_readable();
        }
        if (at_.closed) break;
        auto count = co_await at_.client.fill(kFill);
        if (!count) co_return HeadEnd::lost;
        if (at_.tunnel) co_return HeadEnd::complete;
        if (*count == 0) co_return buffer.empty() ? HeadEnd::ended : HeadEnd::lost;
    }
    co_return HeadEnd::lost;
}

/// Waits until no exchange is in flight; false when the connections are over.
Awaitable<bool> Requests::settle() {
    while (at_.exchange && !at_.closed && !at_.tunnel)
        co_await at_.changed.wait();
    co_return !at_.closed;
}

Awaitable<bool> Requests::refuse(int status, std::string text, bool keep, bool with_body) {
    http::Response page = refusal_page(status, text);
    std::string out;
    http::append_status_line(out, status);
    http::append_fields(out, page.head.fields);
    http::append_field(out, "Content-Length", std::to_string(page.body.size()));
    if (!keep) http::append_field(out, "Connection", "close");
    out += "\r\n";
    if (with_body) out += page.body;
    at_.drain = !keep;
    auto written = co_await net::write_all(*at_.client.stream, out);
    if (written && keep) at_.lease.due_in(at_.limits.idle_timeout);
    co_return written&& keep;
}

void Requests::start_responses() {
    if (at_.responses_running) return;
    at_.responses_running = true;
    net::spawn(at_.client.stream->executor(), relay_responses(connection_), "egress responses");
}

Awaitable<bool> Requests::open_upstream() {
    if (at_.upstream) co_return true;
    auto connected = co_await connect_(at_.guard.host());
    if (!connected) {
        int status = connected.error().code() == ErrorCode::timeout ? 504 : 502;
        co_return co_await refuse(status, "egress: " + connected.error().message(), false);
    }
    if (at_.closed) co_return false;
    at_.upstream.emplace(std::move(*connected));
    co_return true;
}

/// Collects a body and has the hook rewrite it. False: refused.
Awaitable<bool> Requests::rewrite(http::RequestHead& head, Framing& framing, std::string& body,
                                  Exchange& exchange, bool expects) {
    if (framing.kind == Framing::Kind::none) co_return true;
    const http::IncomingBody::Errors errors{ErrorCode::cancelled, ErrorCode::protocol};
    http::IncomingBody incoming(at_.client, framing, at_.limits.max_rewritten_body, errors);
    if (expects) {
        // The server cannot be asked: it gets the request only when the body is known.
        auto told = co_await net::write_all(*at_.client.stream, "HTTP/1.1 100 Continue\r\n\r\n");
        if (!told) co_return false;
        head.fields.erase("Expect");
    }
    auto collected = co_await http::read_all(incoming, at_.limits.max_rewritten_body);
    if (!collected) {
        bool large = collected.error().code() == ErrorCode::too_large;
        co_return co_await refuse(large ? 413 : 400, "egress: " + collected.error().message(),
                                  false);
    }
    std::optional<std::string> made;
    try {
        made = exchange.treatment.rewrite_body(std::move(*collected));
    } catch (const std::exception&) {
        made.reset();
    }
    if (!made) {
        co_return co_await refuse(502, "egress: the body could not be substituted", false);
    }
    body = std::move(*made);
    head.fields.set("Content-Length", std::to_string(body.size()));
    framing = Framing();
    co_return true;
}

/// Judges the request at the front of the buffer and sends it on. False: no more requests.
Awaitable<bool> Requests::take(std::size_t head_size) {
    http::RequestHead head;
    Framing framing;
    Exchange exchange;
    auto wrong = http::parse_request_head(at_.client.buffer.view().substr(0, head_size), head);
    at_.client.buffer.consume(head_size);
    if (!wrong && has_doubtful_coding(head.fields, head.minor_version)) {
        wrong = http::Refusal(400, "doubtful Transfer-Encoding");
    }
    if (!wrong) wrong = http::request_framing(head, framing);
    if (wrong) co_return co_await refuse(wrong->status, std::string(wrong->reason), false);
    at_.lease.clear();
    exchange.method = head.method;
    exchange.old_client = head.minor_version == 0;
    bool keep = http::keeps_alive(head.fields, head.minor_version) && !exchange.old_client;
    at_.last = !keep;
    auto protocol = upgrade_protocol(head.fields);
    bool known = protocol && std::any_of(at_.limits.upgrades.begin(), at_.limits.upgrades.end(),
                                         [&](const std::string& allowed) {
                                             return http::equal_ignoring_case(allowed, *protocol);
                                         });
    if (known && !exchange.old_client) exchange.upgrade = std::move(*protocol);
    bool trailers = head.fields.has_token("TE", "trailers");
    bool expects = head.fields.has_token("Expect", "100-continue");
    std::string host(head.fields.get("Host").value_or(""));
    head.fields.erase("Host");
    strip_hop_fields(head.fields);
    GuardedRequest request(head.method, host, head.target, head.fields);
    exchange.treatment = at_.guard.admit(request);
    if (exchange.treatment.refusal) {
        bool whole = framing.kind == Framing::Kind::none;
        const RefusedRequest& refusal = *exchange.treatment.refusal;
        co_return co_await refuse(refusal.status, refusal.text, keep && whole,
                                  head.method != "HEAD");
    }
    if (!at_.guard.site().tls) at_.lease.name(at_.guard.host_name());
    rewritten_.clear();
    if (exchange.treatment.rewrite_body) {
        bool done = co_await rewrite(head, framing, rewritten_, exchange, expects);
        if (!done) co_return false;
    }
    bool open = co_await open_upstream();
    if (!open) co_return false;
    if (trailers) head.fields.set("TE", "trailers");
    co_return co_await send(std::move(head), framing, std::move(exchange));
}

Awaitable<bool> Requests::send(http::RequestHead head, Framing framing, Exchange exchange) {
    std::string out;
    http::append_request_line(out, head.method, head.target);
    http::append_field(out, "Host", at_.guard.authority());
    bool upgrading = !exchange.upgrade.empty();
    bool trailers = head.fields.has("TE");
    if (framing.kind == Framing::Kind::chunked) head.fields.erase("Content-Length");
    http::append_fields(out, head.fields);
    if (framing.kind == Framing::Kind::chunked) {
        http::append_field(out, "Transfer-Encoding", "chunked");
    }
    if (upgrading || trailers) {
        std::string_view names = !trailers ? "Upgrade" : upgrading ? "Upgrade, TE" : "TE";
        http::append_field(out, "Connection", names);
    }
    if (upgrading) http::append_field(out, "Upgrade", exchange.upgrade);
    out += "\r\n";
    out += rewritten_;
    std::string().swap(rewritten_);
    at_.exchange = std::move(exchange);
    at_.sending = framing.kind != Framing::Kind::none;
    auto written = co_await net::write_all(*at_.upstream->stream, out);
    start_responses();
    // A server that closed may have said why: the other half finds out.
    if (!written) at_.last = true;
    if (written && at_.sending) {
        bool sent = co_await send_body(framing);
        if (!sent) co_return false;
    }
    at_.sending = false;
    if (at_.last) {
        // Watching the client goes on meanwhile, in next_head().
        if (!at_.exchange) co_return false;
    } else if (!at_.exchange) {
        at_.lease.due_in(at_.limits.idle_timeout);
    }
    co_return true;
}

Awaitable<bool> Requests::send_body(Framing framing) {
    const http::IncomingBody::Errors errors{ErrorCode::cancelled, ErrorCode::protocol};
    http::IncomingBody body(at_.client, framing, UINT64_MAX, errors);
    bool chunked = framing.kind == Framing::Kind::chunked;
    BodyWriter writer(*at_.upstream->stream, chunked);
    auto end = co_await writer.copy(body);
    if (end == BodyWriter::End::source_failed) co_return false;
    if (end == BodyWriter::End::sink_failed) {
        // The answer may be on its way all the same; nothing can follow it.
        at_.last = true;
        at_.sending = false;
        at_.drain = true;
        co_await settle();
        co_return false;
    }
    if (!chunked) co_return true;
    http::Fields trailers = body.trailers();
    strip_hop_fields(trailers);
    trailers.erase("Content-Length");
    trailers.erase("Host");
    trailers.erase("Authorization");
    std::string last = "0\r\n";
    http::append_fields(last, trailers);
    last += "\r\n";
    auto written = co_await net::write_all(*at_.upstream->stream, last);
    if (!written) at_.last = true;
    co_return true;
}

/// The client's direction after a change of protocol.
Awaitable<void> Requests::tunnel() {
    bool in_order = co_await copy_bytes(at_.client, *at_.upstream->stream);
    if (in_order) {
        at_.upstream->stream->shutdown_send();
        at_.lease.due_in(at_.limits.idle_timeout);
        while (at_.responses_running && !at_.closed)
            co_await at_.changed.wait();
    }
    at_.close();
}

/// Reads what the client still sends, for a while: closing over unread bytes would reset the
/// connection and take our last answer with it.
Awaitable<void> Requests::drain() {
    at_.lease.due_in(kDrainTime);
    std::size_t left = kDrainBytes;
    while (!at_.closed && left > 0) {
        at_.client.buffer.consume(at_.client.buffer.size());
        auto count = co_await at_.client.fill(kFill);
        if (!count || *count == 0) break;
        left -= std::min(left, *count);
    }
}

Awaitable<void> Requests::run() {
    bool more = true;
    at_.lease.due_in(at_.limits.idle_timeout);
    while (more && !at_.closed) {
        std::size_t size = 0;
        HeadEnd head = co_await next_head(size);
        if (at_.tunnel) {
            co_await tunnel();
            break;
        }
        // Without TLS a client may end its side and still wait for the answer.
        if (head == HeadEnd::ended && at_.exchange && !at_.guard.site().tls) co_await settle();
        if (head == HeadEnd::malformed) co_await refuse(400, "malformed request", false);
        if (head == HeadEnd::too_large) {
            co_await refuse(431, "egress: the request's header is too large", false);
        }
        if (head != HeadEnd::complete || at_.last) break;
        more = co_await take(size);
    }
    at_.client.stream->shutdown_send();
    if (at_.drain) co_await drain();
    at_.close();
    while (at_.responses_running)
        co_await at_.changed.wait();
}

}  // namespace
}  // namespace http1

Awaitable<void> relay_http1(RequestGuard& guard, RelayLimits& limits, IdleWatch& watch,
                            std::unique_ptr<net::Stream> client, std::string received,
                            ConnectUpstream connect) {
    auto connection = std::make_shared<http1::Connection>(guard, limits, watch, std::move(client));
    auto room = connection->client.buffer.prepare(received.size());
    std::copy(received.begin(), received.end(), room.begin());
    connection->client.buffer.commit(received.size());
    std::string().swap(received);
    http1::Requests requests(connection, std::move(connect));
    co_await requests.run();
}

}  // namespace opensandbox::egress
