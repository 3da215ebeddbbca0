#include "mcp/http_transport.hpp"

#include "base/identifier.hpp"
#include "http/event_stream.hpp"

#include <algorithm>

namespace opensandbox::mcp {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kKeepAlive{15};
constexpr std::chrono::seconds kSweepInterval{1};
constexpr std::string_view kPath = "/mcp";
constexpr std::string_view kSessionField = "Mcp-Session-Id";
constexpr std::string_view kVersionField = "MCP-Protocol-Version";

Awaitable<void> refuse(http::Exchange& exchange, int status, int code, std::string message) {
    http::Response response = http::json_response(status, error_text(nullptr, code, message));
    if (status == 401) response.head.fields.set("WWW-Authenticate", "Bearer");
    if (status == 405) response.head.fields.set("Allow", "GET, POST, DELETE");
    if (status == 503) response.head.fields.set("Retry-After", "5");
    co_await exchange.respond(std::move(response));
}

bool accepts(const http::RequestHead& request, std::string_view type) {
    for (const auto& [name, value] : request.fields) {
        if (!http::equal_ignoring_case(name, "Accept")) continue;
        std::string_view rest = value;
        while (!rest.empty()) {
            const std::string_view item = rest.substr(0, rest.find(','));
            rest.remove_prefix(std::min(rest.size(), item.size() + 1));
            std::string_view media = item.substr(0, item.find(';'));
            while (media.starts_with(' '))
                media.remove_prefix(1);
            while (media.ends_with(' '))
                media.remove_suffix(1);
            const std::string_view group = type.substr(0, type.find('/') + 1);
            if (http::equal_ignoring_case(media, type) || media == "*/*") return true;
            if (media == std::string(group) + "*") return true;
        }
    }
    return false;
}

bool is_json(const http::RequestHead& request) {
    const std::string_view type = request.fields.get("Content-Type").value_or("");
    std::string_view media = type.substr(0, type.find(';'));
    while (media.ends_with(' '))
        media.remove_suffix(1);
    return http::equal_ignoring_case(media, "application/json");
}

bool is_initialize(const Payload& payload) {
    if (payload.items.size() != 1) return false;
    const auto* message = std::get_if<Message>(&payload.items.front());
    return message != nullptr && message->kind == Message::Kind::request &&
           message->method == "initialize";
}

bool wants_answer(const Received& received) {
    const auto* message = std::get_if<Message>(&received);
    return message == nullptr || message->kind == Message::Kind::request;
}

}  // namespace

HttpTransport::HttpTransport(asio::any_io_executor executor, AccessRules access, Limits limits,
                             MakeSession make_session)
    : executor_(std::move(executor)),
      access_(std::move(access)),
      limits_(limits),
      make_session_(std::move(make_session)),
      answered_(executor_) {}

Awaitable<void> HttpTransport::handle(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    if (Status allowed = access_.check(request); !allowed) {
        const bool unknown = allowed.error().code() == ErrorCode::unauthenticated;
        co_await refuse(exchange, unknown ? 401 : 403, kRefused, allowed.error().message());
        co_return;
    }
    if (request.path() != kPath) {
        co_await refuse(exchange, 404, kRefused, "there is only /mcp here");
        co_return;
    }
    const auto version = request.fields.get(kVersionField);
    if (version && !is_protocol_version(*version)) {
        co_await refuse(exchange, 400, kRefused,
                        "unsupported protocol version: " + std::string(*version));
        co_return;
    }
    if (request.method == "POST") {
        co_await post(exchange);
    } else if (request.method == "GET") {
        co_await listen(exchange);
    } else if (request.method == "DELETE") {
        co_await remove(exchange);
    } else {
        co_await refuse(exchange, 405, kRefused, "the methods here are GET, POST and DELETE");
    }
}

Awaitable<std::shared_ptr<HttpTransport::Client>> HttpTransport::find(http::Exchange& exchange) {
    const auto id = exchange.request().fields.get(kSessionField);
    if (!id) {
        co_await refuse(exchange, 400, kRefused, "Mcp-Session-Id is required: initialize gives it");
        co_return nullptr;
    }
    auto found = clients_.find(std::string(*id));
    if (found == clients_.end()) {
        co_await refuse(exchange, 404, kSessionNotFound,
                        "unknown session: it has ended; initialize again");
        co_return nullptr;
    }
    found->second->used = Clock::now();
    co_return found->second;
}

Awaitable<void> HttpTransport::post(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    if (!accepts(request, "application/json") || !accepts(request, "text/event-stream")) {
        co_await refuse(exchange, 406, kRefused,
                        "Accept: expected application/json and text/event-stream");
        co_return;
    }
    if (!is_json(request)) {
        co_await refuse(exchange, 415, kRefused, "Content-Type: expected application/json");
        co_return;
    }
    auto body = co_await http::read_all(exchange.body(), limits_.body);
    if (!body) {
        const bool large = body.error().code() == ErrorCode::too_large;
        co_await refuse(exchange, large ? 413 : 400, kInvalidRequest, body.error().message());
        co_return;
    }
    Payload payload = parse_payload(*body);
    const auto* malformed = std::get_if<Malformed>(&payload.items.front());
    if (!payload.batch && malformed != nullptr) {
        co_await exchange.respond(http::json_response(
            400, error_text(malformed->id, malformed->code, malformed->message)));
        co_return;
    }
    std::shared_ptr<Client> client;
    std::string new_id;
    if (is_initialize(payload) && !request.fields.has(kSessionField)) {
        if (clients_.size() >= limits_.sessions) {
            co_await refuse(exchange, 503, kRefused, "too many sessions");
            co_return;
        }
        client = std::make_shared<Client>();
        client->session = make_session_();
        client->used = Clock::now();
        client->ended = std::make_shared<net::Event>(executor_);
        new_id = new_token();
        clients_.emplace(new_id, client);
    } else {
        client = co_await find(exchange);
        if (!client) co_return;
    }
    if (payload.batch && client->session->version() != "2025-03-26") {
        co_await refuse(exchange, 400, kInvalidRequest,
                        "batches are part of protocol version 2025-03-26 only");
        co_return;
    }
    co_await answer(exchange, std::move(payload), std::move(client), std::move(new_id));
}

Awaitable<void> HttpTransport::answer(http::Exchange& exchange, Payload payload,
                                      std::shared_ptr<Client> client, std::string new_id) {
    const auto expected = std::ranges::count_if(payload.items, wants_answer);
    auto outlet = std::make_shared<StreamOutlet>(executor_, static_cast<std::size_t>(expected));
    if (!new_id.empty()) exchange.response_fields.set(kSessionField, new_id);
    ++client->open;
    for (const Received& item : payload.items)
        client->session->take(item, outlet);
    // An initialize that failed leaves no session behind.
    if (!new_id.empty() && client->session->version().empty()) clients_.erase(new_id);
    co_await outlet->deliver(exchange);
    --client->open;
    client->used = Clock::now();
    answered_.notify();
}

Awaitable<void> HttpTransport::listen(http::Exchange& exchange) {
    if (!accepts(exchange.request(), "text/event-stream")) {
        co_await refuse(exchange, 406, kRefused, "Accept: expected text/event-stream");
        co_return;
    }
    auto client = co_await find(exchange);
    if (!client) co_return;
    if (client->listening) {
        co_await refuse(exchange, 409, kRefused, "the session has such a stream already");
        co_return;
    }
    client->listening = true;
    auto sent = co_await exchange.start_with(http::event_stream_head(), ": ready\n\n");
    while (sent) {
        if (co_await client->ended->wait_for(kKeepAlive)) break;
        sent = co_await exchange.write(": still here\n\n");
        client->used = Clock::now();
    }
    client->listening = false;
    if (sent) co_await exchange.finish();
}

Awaitable<void> HttpTransport::remove(http::Exchange& exchange) {
    auto client = co_await find(exchange);
    if (!client) co_return;
    clients_.erase(std::string(*exchange.request().fields.get(kSessionField)));
    end(client);
    co_await exchange.respond(http::Response(200));
}

void HttpTransport::end(const std::shared_ptr<Client>& client) {
    client->session->cancel_all();
    client->ended->notify();
}

Awaitable<void> HttpTransport::end_all(std::chrono::milliseconds grace) {
    auto clients = std::move(clients_);
    clients_.clear();
    for (const auto& [id, client] : clients)
        end(client);
    const auto until = Clock::now() + grace;
    for (const auto& [id, client] : clients) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
        co_await client->session->idle_within(std::max(left, std::chrono::milliseconds(0)));
    }
    // What those calls ended with is still on its way to the clients.
    const auto answering = [](const auto& entry) { return entry.second->open > 0; };
    while (std::ranges::any_of(clients, answering)) {
        const auto left = until - Clock::now();
        if (left.count() <= 0 || !co_await answered_.wait_for(left)) break;
    }
}

Awaitable<void> HttpTransport::sweep() {
    for (;;) {
        co_await net::sleep_for(kSweepInterval);
        const auto oldest = Clock::now() - limits_.idle;
        for (auto at = clients_.begin(); at != clients_.end();) {
            const auto& client = at->second;
            const bool busy = client->open > 0 || client->session->running() > 0;
            if (busy || client->used > oldest) {
                ++at;
                continue;
            }
            end(client);
            at = clients_.erase(at);
        }
    }
}

}  // namespace opensandbox::mcp
