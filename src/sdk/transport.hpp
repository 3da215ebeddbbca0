#pragma once

#include "http/client.hpp"
#include "http/websocket_connection.hpp"
#include "net/stream.hpp"
#include "opensandbox/bytes.hpp"
#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"
#include "sdk/retry.hpp"
#include "sdk/route.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

namespace opensandbox::sdk {

/// One request of the SDK. `target` is raw and comes after the route's prefix
/// ("/sandboxes?page=2").
struct Call {
    Call() = default;
    Call(std::string m, std::string t) : method(std::move(m)), target(std::move(t)) {}
    Call(std::string m, std::string t, std::string json)
        : method(std::move(m)), target(std::move(t)), content(std::move(json)) {
        fields.set("Content-Type", "application/json");
    }

    std::string method;
    std::string target;
    std::string content;
    http::Fields fields;
    http::BodyReader* stream = nullptr;  ///< borrowed; instead of content
};

/// A whole answer with a status below 300.
struct Reply {
    int status = 0;
    http::Fields fields;
    std::string body;
};

/// Sends requests and turns failures of every kind into sdk::Error.
class Transport {
  public:
    Transport(asio::any_io_executor executor, ConnectionConfig config, Route lifecycle);
    /// The same connections, used by other settings. The address must be the same.
    Transport(const Transport& other, ConnectionConfig config);

    [[nodiscard]] const ConnectionConfig& config() const { return config_; }
    [[nodiscard]] const std::shared_ptr<const Route>& lifecycle() const { return lifecycle_; }
    [[nodiscard]] asio::any_io_executor executor() const { return executor_; }

    /// One exchange, each attempt within the request timeout, repeated as the retry policy says.
    /// Answers past 64 MiB are `too_large`.
    Awaitable<Result<Reply>> exchange(std::shared_ptr<const Route> route, Call call);
    /// The same without retries and with its own limit of time for all of it; 0: none.
    Awaitable<Result<Reply>> exchange_once(std::shared_ptr<const Route> route, Call call,
                                           std::chrono::milliseconds timeout);
    /// Sends and returns when the head of a successful answer has come, its body still to be read.
    /// Only connecting is limited in time. Repeated as the retry policy says.
    Awaitable<Result<std::unique_ptr<http::ClientResponse>>> open(
        std::shared_ptr<const Route> route, Call call);

    /// A WebSocket at a target.
    Awaitable<Result<std::unique_ptr<http::WebSocketConnection>>> open_websocket(
        std::shared_ptr<const Route> route, std::string target);

    /// The route to a sandbox's port as the server gave it.
    Result<Route> route_to(std::string_view endpoint, const http::Fields& headers) const;

  private:
    struct Limit;
    using Response = std::unique_ptr<http::ClientResponse>;
    Awaitable<Result<Response>> send(std::shared_ptr<const Route> route, Call call, Limit* limit);
    Awaitable<Result<Response>> open_once(std::shared_ptr<const Route> route, Call call);
    Awaitable<Result<Reply>> receive(http::ClientResponse& answer);
    /// Waits before the next attempt; false: there is none.
    Awaitable<bool> another_attempt(Repeatable repeatable, unsigned attempts, Error error);

    asio::any_io_executor executor_;
    ConnectionConfig config_;
    std::shared_ptr<const Route> lifecycle_;
    std::shared_ptr<http::Client> client_;
    std::minstd_rand chance_;
};

/// The same error in the public type.
Error to_public(const opensandbox::Error& error);

/// The error that an answer of status 300 or more stands for. Understands `{code,message}`,
/// `{detail:…}` of three shapes, `{error}` and plain text (lifecycle 1.3, execd 1.2).
Error error_of_answer(int status, const http::Fields& fields, std::string_view body);

}  // namespace opensandbox::sdk
