#include "sdk/transport.hpp"

#include "net/task.hpp"
#include "version.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::size_t kMaxAnswer = 64 * 1024 * 1024;
constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::chrono::milliseconds kConnectTimeout{10'000};

http::ClientOptions client_options() {
    http::ClientOptions options;
    options.connect_timeout = kConnectTimeout;
    return options;
}

Repeatable repeatable(const Call& call) {
    if (call.stream != nullptr) return Repeatable::if_unsent;
    if (call.method == "GET" || call.method == "HEAD" || call.method == "PUT" ||
        call.method == "DELETE") {
        return Repeatable::always;
    }
    return call.fields.has("Idempotency-Key") ? Repeatable::if_invited : Repeatable::if_unsent;
}

}  // namespace

Error to_public(const opensandbox::Error& error) {
    // Both lists name the same kinds in the same order.
    static_assert(static_cast<int>(ErrorCode::internal) ==
                  static_cast<int>(opensandbox::ErrorCode::internal));
    return {static_cast<ErrorCode>(error.code()), 0, error.wire(), error.message(), {}};
}

/// Ends an exchange, whatever stage it is in, when its time is up.
struct Transport::Limit {
    Limit(const asio::any_io_executor& executor, std::chrono::milliseconds limit)
        : timeout(limit), deadline(executor, limit, [this] {
              abort.abort();
              if (answer) answer->abort();
          }) {}

    std::chrono::milliseconds timeout;
    http::AbortHandle abort;
    http::ClientResponse* answer = nullptr;
    net::Deadline deadline;
};

Transport::Transport(asio::any_io_executor executor, ConnectionConfig config, Route lifecycle)
    : executor_(executor),
      config_(std::move(config)),
      lifecycle_(std::make_shared<const Route>(std::move(lifecycle))),
      client_(std::make_shared<http::Client>(executor, client_options())),
      chance_(std::random_device()()) {}

Transport::Transport(const Transport& other, ConnectionConfig config)
    : executor_(other.executor_),
      config_(std::move(config)),
      lifecycle_(other.lifecycle_),
      client_(other.client_),
      chance_(std::random_device()()) {}

Awaitable<Result<Transport::Response>> Transport::send(std::shared_ptr<const Route> route,
                                                       Call call, Limit* limit) {
    http::ClientRequest request(std::move(call.method), route->prefix + call.target,
                                std::move(call.fields));
    for (const auto& [name, value] : route->headers)
        request.head.fields.set(name, value);
    if (!request.head.fields.has("Host")) request.head.fields.set("Host", route->host);
    request.head.fields.set("User-Agent", std::string("OpenSandbox-Cpp-SDK/") + kContractVersion);
    request.content = std::move(call.content);
    request.stream = call.stream;
    request.connect_timeout = limit ? limit->timeout : config_.request_timeout;
    if (limit) request.abort = &limit->abort;
    auto response = co_await client_->send(route->origin, std::move(request));
    if (response) co_return std::move(*response);
    const std::string where = config_.protocol + "://" + route->host;
    if (response.error().code() == opensandbox::ErrorCode::unavailable) {
        co_return to_public(response.error().within("cannot reach " + where));
    }
    const bool may_want_tls = route == lifecycle_ && !route->origin.tls &&
                              response.error().code() == opensandbox::ErrorCode::bad_gateway;
    if (may_want_tls) {
        co_return to_public(response.error().within("no HTTP from " + where +
                                                    ", which perhaps wants the protocol https"));
    }
    co_return to_public(response.error().within(where));
}

Awaitable<Result<Reply>> Transport::receive(http::ClientResponse& answer) {
    auto body = co_await http::read_all(answer.body(), kMaxAnswer);
    if (!body) co_return to_public(body.error());
    if (answer.head().status >= 300) {
        co_return error_of_answer(answer.head().status, answer.head().fields, *body);
    }
    Reply reply;
    reply.status = answer.head().status;
    reply.fields = answer.head().fields;
    reply.body = std::move(*body);
    co_return reply;
}

Awaitable<Result<Reply>> Transport::exchange_once(std::shared_ptr<const Route> route, Call call,
                                                  std::chrono::milliseconds timeout) {
    std::optional<Limit> limit;
    if (timeout.count() > 0) limit.emplace(executor_, timeout);
    auto response = co_await send(route, std::move(call), limit ? &*limit : nullptr);
    Result<Reply> reply = Error();
    if (response) {
        if (limit) limit->answer = response->get();
        reply = co_await receive(**response);
    } else {
        reply = response.error();
    }
    if (limit) limit->answer = nullptr;
    if (!reply && reply.error().status() == 0 && limit && limit->deadline.expired()) {
        co_return Error(ErrorCode::timeout, config_.protocol + "://" + route->host +
                                                ": no whole answer within " +
                                                std::to_string(timeout.count()) + " ms");
    }
    co_return reply;
}

Awaitable<bool> Transport::another_attempt(Repeatable repeatable, unsigned attempts, Error error) {
    const double chance = std::uniform_real_distribution<double>()(chance_);
    auto pause = next_attempt(config_.retry, repeatable, attempts, error, chance);
    if (!pause) co_return false;
    co_await net::sleep_for(*pause);
    co_return true;
}

Awaitable<Result<Reply>> Transport::exchange(std::shared_ptr<const Route> route, Call call) {
    bool happened = false;
    for (unsigned attempts = 1;; ++attempts) {
        Call copy = call;
        auto reply = co_await exchange_once(route, std::move(copy), config_.request_timeout);
        if (reply) co_return reply;
        // What an earlier attempt has deleted, though its answer was lost, is not there any more.
        if (happened && call.method == "DELETE" && reply.error().status() == 404) co_return Reply();
        happened = happened || may_have_happened(reply.error());
        const bool again = co_await another_attempt(repeatable(call), attempts, reply.error());
        if (!again) co_return reply;
    }
}

Awaitable<Result<Transport::Response>> Transport::open_once(std::shared_ptr<const Route> route,
                                                            Call call) {
    auto response = co_await send(std::move(route), std::move(call), nullptr);
    if (!response) co_return response.error();
    const http::ResponseHead& head = (*response)->head();
    if (head.status < 300) co_return std::move(*response);
    auto body = co_await http::read_all((*response)->body(), kMaxErrorBody);
    co_return error_of_answer(head.status, head.fields, body ? *body : std::string());
}

Awaitable<Result<Transport::Response>> Transport::open(std::shared_ptr<const Route> route,
                                                       Call call) {
    for (unsigned attempts = 1;; ++attempts) {
        Call copy = call;
        auto response = co_await open_once(route, std::move(copy));
        if (response) co_return std::move(*response);
        const bool again = co_await another_attempt(repeatable(call), attempts, response.error());
        if (!again) co_return response.error();
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
    route->origin.tls = lifecycle_->origin.tls;
    if (config_.use_server_proxy && !config_.api_key.empty()) {
        route->headers.set("OPEN-SANDBOX-API-KEY", config_.api_key);
    }
    return route;
}

}  // namespace opensandbox::sdk
