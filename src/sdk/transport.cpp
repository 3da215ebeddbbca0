#include "sdk/transport.hpp"

#include "net/task.hpp"
#include "version.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kMaxAnswer = 64 * 1024 * 1024;
constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kRetryDelay{500};
constexpr std::chrono::milliseconds kConnectTimeout{10'000};

http::ClientOptions client_options(const ConnectionConfig& config, bool timed) {
    http::ClientOptions options;
    options.connect_timeout = kConnectTimeout;
    if (config.request_timeout.count() > 0) {
        options.connect_timeout = std::min(kConnectTimeout, config.request_timeout);
        if (timed) options.head_timeout = config.request_timeout;
    }
    return options;
}

bool may_repeat(const Call& call) {
    return call.stream == nullptr && (call.method == "GET" || call.method == "DELETE");
}

bool is_busy(const Error& error) {
    return error.status() == 429 || error.status() == 503;
}

}  // namespace

Error to_public(const opensandbox::Error& error) {
    // Both lists name the same kinds in the same order.
    static_assert(static_cast<int>(ErrorCode::internal) ==
                  static_cast<int>(opensandbox::ErrorCode::internal));
    return {static_cast<ErrorCode>(error.code()), 0, error.wire(), error.message(), {}};
}

Transport::Transport(asio::any_io_executor executor, ConnectionConfig config, Route lifecycle)
    : executor_(executor),
      config_(std::move(config)),
      lifecycle_(std::move(lifecycle)),
      timed_(executor, client_options(config_, true)),
      untimed_(executor, client_options(config_, false)) {}

Awaitable<Result<std::unique_ptr<http::ClientResponse>>> Transport::send(http::Client& client,
                                                                         const Route& route,
                                                                         Call call) {
    http::ClientRequest request(std::move(call.method), route.prefix + call.target,
                                std::move(call.fields));
    for (const auto& [name, value] : route.headers)
        request.head.fields.set(name, value);
    if (!request.head.fields.has("Host")) request.head.fields.set("Host", route.host);
    request.head.fields.set("User-Agent", std::string("OpenSandbox-Cpp-SDK/") + kContractVersion);
    request.content = std::move(call.content);
    request.stream = call.stream;
    auto response = co_await client.send(route.origin, std::move(request));
    if (!response) {
        const std::string where = config_.protocol + "://" + route.host;
        if (response.error().code() == opensandbox::ErrorCode::unavailable) {
            co_return to_public(response.error().within("cannot reach " + where));
        }
        const bool may_want_tls = &route == &lifecycle_ && !route.origin.tls &&
                                  response.error().code() == opensandbox::ErrorCode::bad_gateway;
        if (may_want_tls) {
            co_return to_public(response.error().within(
                "no HTTP from " + where + ", which perhaps wants the protocol https"));
        }
        co_return to_public(response.error().within(where));
    }
    co_return std::move(*response);
}

Awaitable<Result<std::unique_ptr<http::ClientResponse>>> Transport::open(const Route& route,
                                                                         Call call) {
    auto response = co_await send(untimed_, route, std::move(call));
    if (!response) co_return response.error();
    const http::ResponseHead& head = (*response)->head();
    if (head.status < 300) co_return std::move(*response);
    auto body = co_await http::read_all((*response)->body(), kMaxErrorBody);
    co_return error_of_answer(head.status, head.fields, body ? *body : std::string());
}

Awaitable<Result<Reply>> Transport::exchange_once(const Route& route, Call call,
                                                  std::chrono::milliseconds timeout) {
    const bool limited = timeout.count() > 0;
    auto response = co_await send(limited ? timed_ : untimed_, route, std::move(call));
    if (!response) co_return response.error();
    http::ClientResponse& answer = **response;
    std::optional<net::Deadline> deadline;
    if (limited) deadline.emplace(executor_, timeout, [&answer] { answer.abort(); });
    auto body = co_await http::read_all(answer.body(), kMaxAnswer);
    if (!body) {
        if (deadline && deadline->expired()) {
            co_return Error(ErrorCode::timeout, "the answer did not end within " +
                                                    std::to_string(timeout.count()) + " ms");
        }
        co_return to_public(body.error());
    }
    if (answer.head().status >= 300) {
        co_return error_of_answer(answer.head().status, answer.head().fields, *body);
    }
    Reply reply;
    reply.status = answer.head().status;
    reply.fields = answer.head().fields;
    reply.body = std::move(*body);
    co_return reply;
}

Awaitable<Result<Reply>> Transport::exchange(const Route& route, Call call) {
    const bool repeatable = may_repeat(call);
    for (int attempt = 1;; ++attempt) {
        Call copy = call;
        auto reply = co_await exchange_once(route, std::move(copy), config_.request_timeout);
        if (reply || !repeatable || attempt == kAttempts || !is_busy(reply.error())) {
            co_return reply;
        }
        co_await net::sleep_for(kRetryDelay * attempt);
    }
}

Result<Route> Transport::route_to(std::string_view endpoint, const http::Fields& headers) const {
    auto route = parse_route(endpoint, config_.protocol);
    if (!route) {
        return Error(ErrorCode::protocol,
                     "the server gave an endpoint that is none: " + route.error().message());
    }
    for (const auto& [name, value] : headers)
        route->headers.set(name, value);
    route->origin.tls = lifecycle_.origin.tls;
    if (config_.use_server_proxy && !config_.api_key.empty()) {
        route->headers.set("OPEN-SANDBOX-API-KEY", config_.api_key);
    }
    return route;
}

}  // namespace opensandbox::sdk
