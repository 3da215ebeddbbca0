#include "opensandbox/connection.hpp"

#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

namespace {

/// A key goes into a header field: no line ends, no control characters.
bool is_field_text(std::string_view text) {
    for (char c : text) {
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return false;
    }
    return true;
}

}  // namespace

Connection::Connection(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}

Result<Connection> Connection::open(asio::any_io_executor executor, ConnectionConfig config) {
    if (config.protocol != "http" && config.protocol != "https") {
        return Error(ErrorCode::invalid_argument,
                     "protocol: '" + config.protocol + "' is not accepted; use http or https");
    }
    auto route = parse_route(config.domain, config.protocol);
    if (!route) return route.error().within("domain");
    if (!is_field_text(config.api_key)) {
        return Error(ErrorCode::invalid_argument, "the API key holds control characters");
    }
    if (auto refused = refuse_policy(config.retry)) return *refused;
    route->prefix += "/v1";
    if (config.protocol == "https") route->origin.tls = std::make_shared<net::TlsClient>();
    if (!config.api_key.empty()) route->headers.set("OPEN-SANDBOX-API-KEY", config.api_key);
    return Connection(
        std::make_shared<Transport>(std::move(executor), std::move(config), std::move(*route)));
}

Connection Connection::with_request_timeout(std::chrono::milliseconds timeout) const {
    ConnectionConfig config = transport_->config();
    config.request_timeout = timeout;
    return Connection(std::make_shared<Transport>(*transport_, std::move(config)));
}

Result<Connection> Connection::with_retry(RetryPolicy policy) const {
    if (auto refused = refuse_policy(policy)) return *refused;
    ConnectionConfig config = transport_->config();
    config.retry = policy;
    return Connection(std::make_shared<Transport>(*transport_, std::move(config)));
}

const ConnectionConfig& Connection::config() const {
    return transport_->config();
}

asio::any_io_executor Connection::executor() const {
    return transport_->executor();
}

Awaitable<Result<std::string>> Connection::server_version() const {
    Route root = *transport_->lifecycle();
    root.prefix.resize(root.prefix.size() - std::string_view("/v1").size());
    Call call("GET", "/version");
    auto route = std::make_shared<const Route>(std::move(root));
    auto reply = co_await transport_->exchange(std::move(route), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_version(reply->body);
}

}  // namespace opensandbox::sdk
