#pragma once

#include "http/client.hpp"
#include "http/exchange.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace opensandbox::http {

/// One whole message, or the end of the connection.
struct WebSocketMessage {
    enum class Kind : unsigned char { text, binary, close };
    WebSocketMessage(Kind k, std::string d, std::uint16_t c = 0)
        : kind(k), data(std::move(d)), code(c) {}
    Kind kind;
    std::string data;        ///< of a close: its reason
    std::uint16_t code = 0;  ///< of a close: 1005 when it carried none
};

/// Messages over an upgraded connection (RFC 6455): fragments joined, pings answered, frames
/// checked, no extensions. One receive() and any number of senders may be in flight; senders take
/// turns. Destruction closes the connection.
class WebSocketConnection {
  public:
    enum class Side : unsigned char { server, client };
    /// `max_message`, bytes: a larger one is refused with 1009.
    WebSocketConnection(Upgraded connection, Side side,
                        std::size_t max_message = std::size_t{16} << 20);
    ~WebSocketConnection();
    WebSocketConnection(const WebSocketConnection&) = delete;
    WebSocketConnection& operator=(const WebSocketConnection&) = delete;

    /// The next message. A close frame is answered and comes as `close`, after which only failures
    /// follow. `protocol` for frames that break the rules (1002, 1007 or 1009 was sent),
    /// `cancelled` after abort(), `bad_gateway` when the connection broke.
    Awaitable<Result<WebSocketMessage>> receive();
    Awaitable<Status> send_text(std::string_view bytes);
    Awaitable<Status> send_binary(std::string_view bytes);
    Awaitable<Status> ping();
    /// Sends a close frame; receive() goes on until the peer's comes.
    Awaitable<Status> close(std::uint16_t code, std::string reason);
    /// Ends the connection at once; operations in flight end with `cancelled`.
    void abort();
    /// When anything last arrived, pongs included.
    [[nodiscard]] std::chrono::steady_clock::time_point last_heard() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

/// Answers the upgrade of a request (is_websocket_upgrade). Fails when the client is gone.
Awaitable<Result<std::unique_ptr<WebSocketConnection>>> accept_websocket(
    Exchange& exchange, std::size_t max_message = std::size_t{16} << 20);

/// Opens a WebSocket at an origin. `fields` are added to the request (Authorization…). Fails as
/// Client::send does, and with `bad_gateway` when the server does not agree.
Awaitable<Result<std::unique_ptr<WebSocketConnection>>> connect_websocket(Client& client,
                                                                          Origin origin,
                                                                          std::string target,
                                                                          Fields fields = {});

}  // namespace opensandbox::http
