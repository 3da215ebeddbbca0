#pragma once

#include "base/error.hpp"
#include "egress/intercept/core/gate.hpp"
#include "egress/intercept/tls/session_cache.hpp"
#include "net/openssl_handles.hpp"
#include "net/socket_stream.hpp"
#include "net/tls_context.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::egress {

/// What is done when a server asks for a client's certificate, which we do not have.
enum class CertificateRequest : std::uint8_t {
    decline,       ///< go on without one, as most clients would
    pass_through,  ///< let client and server speak to each other, unseen
    refuse,
};

struct UpstreamTlsSettings {
    std::string trust_directory;  ///< of certificates named by hash; empty: the system's roots
    std::string extra_ca_file;    ///< PEM, trusted as well; empty: none
    bool verify = true;           ///< chain and name
    /// Clients for which nothing is verified all the same; may be empty.
    std::function<bool(ClientId client)> unverified;
    CertificateRequest on_certificate_request = CertificateRequest::decline;
    std::size_t cached_sessions = 4096;
    std::chrono::milliseconds timeout{10'000};  ///< of a handshake
};

/// What a connection is opened for: sessions are resumed only among equals.
struct UpstreamTarget {
    ClientId client = 0;
    std::string host;  ///< what the certificate must name; sent unless it is an address
    std::uint16_t port = 0;
    std::vector<std::string> protocols;  ///< offered; empty: the extension is left out
};

/// A connection to a server that proved to be who it was meant to be.
struct UpstreamConnection {
    std::unique_ptr<net::Stream> stream;
    std::string protocol;    ///< agreed on; empty when the server chose none
    SSL* session = nullptr;  ///< lives with the stream
    bool resumed = false;
    /// The server wanted a certificate; with `decline` there may be a stream all the same.
    bool certificate_requested = false;
    std::string failure;  ///< why there is no stream
};

/// The client side towards servers.
class UpstreamTls {
  public:
    /// `invalid_argument` names the file or folder that is wrong.
    static Result<std::unique_ptr<UpstreamTls>> make(UpstreamTlsSettings settings);

    /// Shakes hands on a connected socket.
    Awaitable<UpstreamConnection> secure(net::StreamSocket socket, UpstreamTarget target);
    [[nodiscard]] const UpstreamTlsSettings& settings() const { return settings_; }

  private:
    explicit UpstreamTls(UpstreamTlsSettings settings)
        : settings_(std::move(settings)), sessions_(settings_.cached_sessions) {}
    Status set_up();
    SSL* prepare(const UpstreamTarget& target, const std::string& key);

    UpstreamTlsSettings settings_;
    SessionCache sessions_;
    net::TlsContextHandle context_;
};

}  // namespace opensandbox::egress
