#pragma once

#include "base/error.hpp"
#include "egress/intercept/core/gate.hpp"
#include "egress/intercept/tls/leaf_cache.hpp"
#include "egress/intercept/tls/session_tickets.hpp"
#include "net/socket_stream.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace opensandbox::egress {

/// What a sandbox's client is shown in place of the server.
struct ClientFace {
    ClientId client = 0;
    std::string host;      ///< name or address for the certificate
    std::string protocol;  ///< chosen for it; empty: none
    std::string received;  ///< the bytes that were read already, its hello first
};

/// The server side towards sandboxes.
class ClientTls {
  public:
    /// `authority` is borrowed.
    static Result<std::unique_ptr<ClientTls>> make(const CertificateAuthority& authority,
                                                   std::size_t cached_leaves);

    /// Shakes hands as the server that `face` describes. `unavailable` when the client breaks it
    /// off (a client that does not trust the authority does), `timeout`.
    Awaitable<Result<std::unique_ptr<net::Stream>>> accept(net::StreamSocket socket,
                                                           ClientFace face,
                                                           std::chrono::milliseconds timeout);

  private:
    ClientTls(const CertificateAuthority& authority, std::size_t cached_leaves)
        : authority_(authority), leaves_(authority, cached_leaves) {}
    Status set_up();
    Result<SSL*> prepare(const ClientFace& face);

    const CertificateAuthority& authority_;
    LeafCache leaves_;
    SessionTickets tickets_;
    net::SslContextHandle context_;
};

}  // namespace opensandbox::egress
