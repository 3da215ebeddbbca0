#include "sdk/transport.hpp"
#include "version.hpp"

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
    const Route& route, std::string target) {
    http::Fields fields = route.headers;
    fields.set("Host", route.host);
    fields.set("User-Agent", std::string("OpenSandbox-Cpp-SDK/") + kContractVersion);
    auto socket = co_await http::connect_websocket(timed_, route.origin, route.prefix + target,
                                                   std::move(fields));
    if (socket) co_return std::move(*socket);
    const int status = status_in(socket.error().message());
    if (status != 0) {
        const std::string none;
        co_return error_of_answer(status, http::Fields(), none).within("WebSocket " + target);
    }
    co_return to_public(socket.error().within(config_.protocol + "://" + route.host));
}

}  // namespace opensandbox::sdk
