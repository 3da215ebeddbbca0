#pragma once

#include "http/exchange.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <memory>

namespace opensandbox::http {

/// Limits of one server. Sizes in bytes.
struct ServerOptions {
    std::size_t max_head = 64 * 1024;                ///< start line and fields: 431 past it
    std::uint64_t max_body = UINT64_MAX;             ///< 413 past it
    std::size_t max_connections = 16384;             ///< further ones wait in the backlog
    std::chrono::milliseconds idle_timeout{75'000};  ///< between requests of a connection
    std::chrono::milliseconds head_timeout{30'000};  ///< from first byte to end of head
};

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
