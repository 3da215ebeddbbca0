#pragma once

#include "net/socket_stream.hpp"
#include "net/stream.hpp"
#include "net/tls_session.hpp"

#include <memory>
#include <string>

namespace opensandbox::net {

struct TlsStreamCore;

/// A TLS connection in the making, of either side. The session must be attached to the socket.
class TlsHandshake {
  public:
    TlsHandshake(StreamSocket socket, TlsSession session);
    ~TlsHandshake();
    TlsHandshake(TlsHandshake&&) = default;
    TlsHandshake& operator=(TlsHandshake&&) = default;

    /// Shakes hands; `unavailable` (naming the peer as `name`) when that fails, `cancelled` after
    /// close(). May be destroyed only when it has returned.
    Awaitable<Status> run(std::string name);
    /// Ends a run() in flight.
    void close();
    /// The stream; only after run() has succeeded, once.
    std::unique_ptr<Stream> finish();

  private:
    std::shared_ptr<TlsStreamCore> core_;
};

}  // namespace opensandbox::net
