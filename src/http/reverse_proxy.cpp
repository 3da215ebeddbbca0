#include "http/reverse_proxy.hpp"

#include "http/serialize.hpp"
#include "http/splice.hpp"
#include "http/status.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::http {
namespace {

constexpr std::size_t kMinPiece = 4 * 1024;
constexpr std::size_t kMaxPiece = 64 * 1024;

/// Fields that concern one connection only (RFC 9110 section 7.6.1).
constexpr std::array<std::string_view, 8> kHopByHop{
    "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
    "TE",         "Trailer",    "Transfer-Encoding",  "Upgrade"};

Fields end_to_end_fields(const Fields& fields) {
    Fields kept;
    for (const auto& [name, value] : fields) {
        bool hop = std::any_of(kHopByHop.begin(), kHopByHop.end(), [&](std::string_view known) {
            return equal_ignoring_case(name, known);
        });
        // Framing is ours to decide: a Connection field that names it does not take it away.
        bool framing = equal_ignoring_case(name, "Content-Length");
        if (!hop && (framing || !fields.has_token("Connection", name))) kept.add(name, value);
    }
    return kept;
}

/// Trailers without what only a head may say (RFC 9110 section 6.5.1).
Fields passable_trailers(Fields trailers) {
    for (std::string_view name : kHopByHop)
        trailers.erase(name);
    for (std::string_view name : {"Content-Length", "Content-Type", "Content-Encoding",
                                  "Content-Range", "Host", "Authorization", "Cookie", "Set-Cookie"})
        trailers.erase(name);
    return trailers;
}

bool is_upgrade(Exchange& exchange) {
    const Fields& fields = exchange.request().fields;
    return fields.has_token("Connection", "upgrade") && fields.has("Upgrade") &&
           exchange.body().content_length() == std::uint64_t(0);
}

/// What the exchange and the watch over its client share.
struct Link {
    AbortHandle sending;                  ///< the request until its response's head
    ClientResponse* receiving = nullptr;  ///< then the response
    bool over = false;
};

void watch_client(Exchange& exchange, const std::shared_ptr<Link>& link) {
    exchange.on_client_gone([link] {
        if (link->over) return;
        link->sending.abort();
        if (link->receiving != nullptr) link->receiving->abort();
    });
}

/// The client's body; tells when it has been read to its end.
class WatchedBody final : public BodyReader {
  public:
    WatchedBody(BodyReader& body, std::function<void()> at_end)
        : body_(body), at_end_(std::move(at_end)) {}

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        auto count = co_await body_.read_some(into);
        if (count && *count == 0 && at_end_) std::exchange(at_end_, nullptr)();
        co_return count;
    }
    std::optional<std::uint64_t> content_length() const override { return body_.content_length(); }
    Fields trailers() const override { return passable_trailers(body_.trailers()); }

  private:
    BodyReader& body_;
    std::function<void()> at_end_;
};

ClientRequest make_request(Exchange& exchange, const Forwarding& forwarding) {
    const RequestHead& received = exchange.request();
    ClientRequest request(received.method, forwarding.target, end_to_end_fields(received.fields));
    // Leave to send the body is given by us, when the backend takes it.
    request.head.fields.erase("Expect");
    request.head.fields.erase("Content-Length");
    if (forwarding.edit_request) forwarding.edit_request(request.head.fields);
    if (is_upgrade(exchange)) {
        request.head.fields.add("Connection", "Upgrade");
        request.head.fields.add("Upgrade", std::string(*received.fields.get("Upgrade")));
    }
    return request;
}

Response failure_response(const Forwarding& forwarding, const Error& error) {
    if (forwarding.render_error) return forwarding.render_error(error);
    std::string_view code = error.wire();
    if (code.empty()) code = "GENERAL::UNKNOWN_ERROR";
    return json_response(status_of(error.code()), error_body(code, error.message()));
}

ResponseHead passed_head(const ClientResponse& response, const Forwarding& forwarding) {
    ResponseHead head(response.head().status, end_to_end_fields(response.head().fields));
    if (forwarding.edit_response) forwarding.edit_response(head);
    return head;
}

/// Passes the body on as it comes. False when it broke off.
Awaitable<bool> pump(BodyReader& from, Exchange& to) {
    // Small while little flows, so that many quiet streams cost little.
    std::size_t size = kMinPiece;
    auto piece = std::make_unique_for_overwrite<char[]>(size);
    while (true) {
        auto count = co_await from.read_some(std::span(piece.get(), size));
        if (!count) co_return false;
        if (*count == 0) co_return true;
        auto written = co_await to.write(std::string_view(piece.get(), *count));
        if (!written) co_return false;
        if (*count == size && size < kMaxPiece) {
            size *= 4;
            piece = std::make_unique_for_overwrite<char[]>(size);
        }
    }
}

Awaitable<void> pass_upgrade(Exchange& exchange, ClientResponse& response, ResponseHead head) {
    auto protocol = response.head().fields.get("Upgrade").value_or("websocket");
    head.fields.add("Connection", "Upgrade");
    head.fields.add("Upgrade", std::string(protocol));
    auto started = co_await exchange.start(std::move(head));
    if (!started) co_return;
    Upgraded client = exchange.upgrade();
    Upgraded backend = response.upgrade();
    co_await splice(std::move(client), std::move(backend));
}

/// A body that is here already goes out together with the head.
Awaitable<void> pass_whole(Exchange& exchange, ClientResponse& response, ResponseHead head,
                           std::size_t size) {
    std::string body(size, '\0');
    std::size_t filled = 0;
    while (filled < size) {
        auto count = co_await response.body().read_some(std::span(body).subspan(filled));
        if (!count || *count == 0) co_return;
        filled += *count;
    }
    auto started = co_await exchange.start_with(std::move(head), body);
    if (started) co_await exchange.finish();
}

Awaitable<void> pass_response(Exchange& exchange, ClientResponse& response, ResponseHead head) {
    if (auto rest = response.received_rest(); rest && *rest <= kMaxPiece) {
        co_return co_await pass_whole(exchange, response, std::move(head), *rest);
    }
    auto started = co_await exchange.start(std::move(head));
    if (!started) co_return;
    bool whole = co_await pump(response.body(), exchange);
    // Without finish() the server cuts the connection: the client must not take half for all.
    if (!whole) co_return;
    auto trailers = passable_trailers(response.body().trailers());
    co_await exchange.finish_with_trailers(std::move(trailers));
}

}  // namespace

Awaitable<void> forward(Exchange& exchange, Client& client, Forwarding forwarding) {
    auto link = std::make_shared<Link>();
    bool upgrading = is_upgrade(exchange);
    bool bodiless = exchange.body().content_length() == std::uint64_t(0);
    WatchedBody body(exchange.body(), [&] { watch_client(exchange, link); });
    if (bodiless) watch_client(exchange, link);
    auto sender = [&] {
        ClientRequest request = make_request(exchange, forwarding);
        if (!bodiless) {
            request.stream = &body;
            request.full_duplex = true;
        }
        request.abort = &link->sending;
        return client.send(forwarding.origin, std::move(request));
    };
    auto response = co_await sender();
    bool unreachable = !response && response.error().code() == ErrorCode::unavailable;
    if (unreachable && forwarding.reroute && forwarding.reroute(forwarding)) {
        response = co_await sender();
    }
    if (!response) {
        link->over = true;
        co_await exchange.respond(failure_response(forwarding, response.error()));
        co_return;
    }
    ClientResponse& answer = **response;
    link->receiving = &answer;
    std::optional<Error> failure;
    if (forwarding.failure_in) failure = forwarding.failure_in(answer.head());
    if (failure) {
        link->over = true;
        co_await exchange.respond(failure_response(forwarding, *failure));
    } else if (answer.head().status == 101 && upgrading) {
        link->over = true;
        co_await pass_upgrade(exchange, answer, passed_head(answer, forwarding));
    } else if (answer.head().status == 101) {
        link->over = true;
        const Error switched(ErrorCode::bad_gateway, "the backend switched protocols");
        co_await exchange.respond(failure_response(forwarding, switched));
    } else {
        co_await pass_response(exchange, answer, passed_head(answer, forwarding));
    }
    link->over = true;
    link->receiving = nullptr;
    co_await answer.stop_sending();
}

}  // namespace opensandbox::http
