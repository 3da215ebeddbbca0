#include "egress/intercept/core/message_fields.hpp"
#include "egress/intercept/http1/exchange.hpp"
#include "http/serialize.hpp"

namespace opensandbox::egress::http1 {
namespace {

using http::Framing;

constexpr std::size_t kResponseFill = 16 * 1024;
constexpr std::chrono::seconds kResponseDrainTime{2};
/// A body that came whole with its head goes out with it up to this size.
constexpr std::size_t kJoined = 12 * 1024;

/// One answer of the server, from its head to its end.
class Response {
  public:
    explicit Response(Connection& connection) : at_(connection) {}

    enum class End : std::uint8_t { interim, complete, tunnel, failed };
    /// The head is `size` bytes at the front of the buffer.
    Awaitable<End> relay(std::size_t size);

  private:
    Awaitable<End> relay_interim();
    Awaitable<End> relay_final();
    Awaitable<bool> relay_body(std::string head);
    Awaitable<bool> relay_trailers(http::Fields trailers);
    void frame(std::string& out);

    Connection& at_;
    http::ParsedResponse parsed_;
    Framing framing_;
    bool chunked_ = false;
    bool closing_ = false;
};

Awaitable<Response::End> Response::relay(std::size_t size) {
    const std::string_view head = at_.upstream->buffer.view().substr(0, size);
    if (http::parse_response_head(head, parsed_)) co_return End::failed;
    http::Fields& fields = parsed_.head.fields;
    if (has_doubtful_coding(fields, parsed_.minor_version)) co_return End::failed;
    if (http::response_framing(parsed_, at_.exchange->method, framing_)) co_return End::failed;
    at_.upstream->buffer.consume(size);
    if (parsed_.head.status < 200) co_return co_await relay_interim();
    co_return co_await relay_final();
}

/// 1xx: passed on as it is, but for 101, which must answer what was asked.
Awaitable<Response::End> Response::relay_interim() {
    http::Fields& fields = parsed_.head.fields;
    bool switching = parsed_.head.status == 101;
    auto protocol = upgrade_protocol(fields);
    if (switching) {
        bool asked = !at_.exchange->upgrade.empty() && protocol &&
                     http::equal_ignoring_case(*protocol, at_.exchange->upgrade);
        if (!asked) co_return End::failed;
    }
    strip_hop_fields(fields);
    fields.erase("Content-Length");
    redact(at_.exchange->treatment, fields);
    if (at_.exchange->old_client && !switching) co_return End::interim;
    std::string out;
    http::append_status_line(out, parsed_.head.status);
    if (switching) {
        http::append_field(out, "Connection", "Upgrade");
        http::append_field(out, "Upgrade", *protocol);
    }
    http::append_fields(out, fields);
    out += "\r\n";
    auto written = co_await net::write_all(*at_.client.stream, out);
    if (!written) co_return End::failed;
    co_return switching ? End::tunnel : End::interim;
}

/// How the client finds the end of the body, which need not be how the server told us.
void Response::frame(std::string& out) {
    bool unknown =
        framing_.kind == Framing::Kind::chunked || framing_.kind == Framing::Kind::until_close;
    chunked_ = unknown && !at_.exchange->old_client;
    closing_ = at_.last || at_.exchange->old_client ||
               framing_.kind == Framing::Kind::until_close ||
               !http::keeps_alive(parsed_.head.fields, parsed_.minor_version);
    strip_hop_fields(parsed_.head.fields);
    if (unknown) parsed_.head.fields.erase("Content-Length");
    if (parsed_.head.status == 204) parsed_.head.fields.erase("Content-Length");
    redact(at_.exchange->treatment, parsed_.head.fields);
    http::append_status_line(out, parsed_.head.status);
    http::append_fields(out, parsed_.head.fields);
    if (chunked_) http::append_field(out, "Transfer-Encoding", "chunked");
    if (closing_) http::append_field(out, "Connection", "close");
    out += "\r\n";
}

Awaitable<Response::End> Response::relay_final() {
    std::string head;
    frame(head);
    if (closing_) at_.last = true;
    at_.exchange->answered = true;
    bool relayed = co_await relay_body(std::move(head));
    co_return relayed ? End::complete : End::failed;
}

Awaitable<bool> Response::relay_body(std::string head) {
    http::Input& from = *at_.upstream;
    net::Stream& to = *at_.client.stream;
    bool small = framing_.kind == Framing::Kind::none ||
                 (framing_.kind == Framing::Kind::length && framing_.length <= kJoined &&
                  framing_.length <= from.buffer.size());
    if (small) {
        auto length =
            static_cast<std::size_t>(framing_.kind == Framing::Kind::none ? 0 : framing_.length);
        head += from.buffer.view().substr(0, length);
        from.buffer.consume(length);
        auto written = co_await net::write_all(to, head);
        co_return written.has_value();
    }
    auto begun = co_await net::write_all(to, head);
    if (!begun) co_return false;
    const http::IncomingBody::Errors errors{ErrorCode::bad_gateway, ErrorCode::protocol};
    http::IncomingBody body(from, framing_, UINT64_MAX, errors);
    BodyWriter writer(to, chunked_);
    auto end = co_await writer.copy(body);
    if (end != BodyWriter::End::done) co_return false;
    if (!chunked_) co_return true;
    co_return co_await relay_trailers(body.trailers());
}

Awaitable<bool> Response::relay_trailers(http::Fields trailers) {
    strip_hop_fields(trailers);
    trailers.erase("Content-Length");
    redact(at_.exchange->treatment, trailers);
    std::string last = "0\r\n";
    http::append_fields(last, trailers);
    last += "\r\n";
    auto written = co_await net::write_all(*at_.client.stream, last);
    co_return written.has_value();
}

/// Reads until a whole head stands at the front of the buffer.
Awaitable<HeadEnd> read_head(Connection& at, std::size_t& size) {
    http::HeadScanner scanner;
    http::Input& input = *at.upstream;
    while (true) {
        if (input.buffer.empty()) {
            input.buffer.release();
            co_await input.stream->wait_readable();
        } else {
            // Nobody asked: an answer to what the client is going to ask would be a forged one.
            if (!at.exchange) co_return HeadEnd::malformed;
            auto state = scanner.scan(input.buffer.view());
            size = scanner.size();
            if (state == http::HeadScanner::State::malformed) co_return HeadEnd::malformed;
            if (size > at.limits.max_header) co_return HeadEnd::too_large;
            if (state == http::HeadScanner::State::complete) co_return HeadEnd::complete;
        }
        if (at.closed) co_return HeadEnd::lost;
        auto count = co_await input.fill(kResponseFill);
        if (!count) co_return HeadEnd::lost;
        if (*count == 0) co_return input.buffer.empty() ? HeadEnd::ended : HeadEnd::lost;
    }
}

const char* describe(HeadEnd end) {
    switch (end) {
        case HeadEnd::malformed: return "egress: the server's answer is malformed";
        case HeadEnd::too_large: return "egress: the server's answer has too large a head";
        default: return "egress: the server ended the connection without an answer";
    }
}

/// Tells the client that there will be no answer, where none has begun.
Awaitable<void> answer_for_server(Connection& at, std::string reason) {
    if (!at.exchange || at.exchange->answered || at.closed) co_return;
    http::Response page = refusal_page(502, reason);
    std::string out;
    http::append_status_line(out, page.head.status);
    http::append_fields(out, page.head.fields);
    http::append_field(out, "Content-Length", std::to_string(page.body.size()));
    http::append_field(out, "Connection", "close");
    out += "\r\n";
    if (at.exchange->method != "HEAD") out += page.body;
    co_await net::write_all(*at.client.stream, out);
}

Awaitable<void> tunnel_back(Connection& at) {
    at.tunnel = true;
    at.lease.clear();
    at.changed.notify();
    // Both ways until both have ended; one that ended alone has its time limited.
    bool in_order = co_await copy_bytes(*at.upstream, *at.client.stream);
    if (in_order) {
        at.client.stream->shutdown_send();
        at.lease.due_in(at.limits.idle_timeout);
    } else {
        at.close();
    }
}

}  // namespace

Awaitable<void> relay_responses(std::shared_ptr<Connection> connection) {
    Connection& at = *connection;
    while (!at.closed) {
        std::size_t size = 0;
        HeadEnd head = co_await read_head(at, size);
        if (head != HeadEnd::complete) {
            co_await answer_for_server(at, describe(head));
            break;
        }
        Response response(at);
        auto end = co_await response.relay(size);
        if (end == Response::End::interim) continue;
        if (end == Response::End::tunnel) {
            co_await tunnel_back(at);
            at.responses_running = false;
            at.changed.notify();
            co_return;
        }
        if (end == Response::End::failed) {
            co_await answer_for_server(at, describe(HeadEnd::malformed));
            break;
        }
        at.exchange.reset();
        if (at.last && at.sending) {
            // The other half reads on, so that the client gets to see this answer.
            at.drain = true;
            at.lease.due_in(kResponseDrainTime);
            at.client.stream->shutdown_send();
            at.upstream->stream->close();
            at.responses_running = false;
            at.changed.notify();
            co_return;
        }
        if (at.last) break;
        if (!at.sending) at.lease.due_in(at.limits.idle_timeout);
        at.changed.notify();
    }
    at.responses_running = false;
    at.close();
}

}  // namespace opensandbox::egress::http1
