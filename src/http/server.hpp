#pragma once

#include "http/exchange.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <memory>

namespace opensandbox::http {

/// Limits of one server. Sizes in bytes.
struct ServerOptions {
    std::size_t max_head = 64 * 1024;     ///< start line and fields: 431 past it
    std::uint64_t max_body = UINT64_MAX;  ///< 413 past it
    /// At once; never more than half of the descriptors that the process may open. Where there is
    /// no more room, a connection that waits for a request gives way to a new one, the one that
    /// waits longest first; those that carried an authorized request are the last of them.
    std::size_t max_connections = 16384;
    std::chrono::milliseconds idle_timeout{75'000};  ///< between requests of a connection
    std::chrono::milliseconds head_timeout{30'000};  ///< from first byte to end of head
    /// The handler says by set_authorized() which requests are: for the others a client that takes
    /// nothing for `unauthorized_send_timeout` is cut, and so are the oldest of them when a new
    /// connection finds no room and none that waits.
    bool tells_authorized = false;
    std::chrono::milliseconds unauthorized_send_timeout{60'000};
};

/// Says that the client of this exchange may ask: it is not cut for the sake of others.
void set_authorized(Exchange& exchange);

/// An HTTP/1.1 server over any listener: keep-alive, pipelining in order, chunked bodies both ways,
/// `Expect: 100-continue`, upgrades. Malformed requests get 400 and the connection is closed. Runs
/// on one executor; handlers run there too. No memory is held for an idle connection but its frame.
class Server {
  public:
    Server(asio::any_io_executor executor, Handler handler, ServerOptions options = {});
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Starts accepting; may be called for several listeners.
    void serve(std::unique_ptr<net::Listener> listener);
    /// Stops accepting, lets exchanges in flight end within `grace`, then closes what is left.
    Awaitable<void> drain(std::chrono::milliseconds grace);
    [[nodiscard]] std::size_t open_connections() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::http
