#include "sdk/transport.hpp"
#include "version.hpp"

#include <algorithm>
#include <cstdlib>

namespace opensandbox::sdk {

namespace {

/// What a refused upgrade was answered, of which only the status is told.
int status_in(std::string_view message) {
    constexpr std::string_view kBefore = "the server answered ";
    auto at = message.find(kBefore);
    if (at == std::string_view::npos) return 0;
    return std::atoi(std::string(message.substr(at + kBefore.size(), 3)).c_str());
}

}  // namespace

Awaitable<Result<std::unique_ptr<http::WebSocketConnection>>> Transport::open_websocket(
    std::shared_ptr<const Route> route, std::string target) {
    http::Fields fields = route->headers;
    fields.set("Host", route->host);
    fields.set("User-Agent", std::string("OpenSandbox-Cpp-SDK/") + kContractVersion);
    // Of its own: the answer to an upgrade is waited for only so long.
    http::ClientOptions options;
    options.head_timeout = config_.request_timeout;
    if (config_.request_timeout.count() > 0) {
        options.connect_timeout = std::min(options.connect_timeout, config_.request_timeout);
    }
    http::Client client(executor_, options);
    auto socket = co_await http::connect_websocket(client, route->origin, route->prefix + target,
                                                   std::move(fields));
    if (socket) co_return std::move(*socket);
    const int status = status_in(socket.error().message());
    if (status != 0) {
        const std::string none;
        co_return error_of_answer(status, http::Fields(), none).within("WebSocket " + target);
    }
    co_return to_public(socket.error().within(config_.protocol + "://" + route->host));
}

}  // namespace opensandbox::sdk
