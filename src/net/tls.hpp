#pragma once

#include "base/error.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace opensandbox::net {

/// How a client speaks TLS: whom it trusts and who it is.
struct TlsSettings {
    std::string ca_file;    ///< PEM; empty: SSL_CERT_FILE, SSL_CERT_DIR, else the system's roots
    std::string cert_file;  ///< PEM chain; empty: no client certificate
    std::string key_file;   ///< PEM, not encrypted; set exactly when cert_file is
    std::string ca_pem;     ///< the certificates themselves, in place of ca_file
    std::string cert_pem;   ///< in place of cert_file
    std::string key_pem;    ///< in place of key_file
    /// What the certificate must name and the server is told; empty: the host that it dials.
    std::string server_name;
    bool verify = true;  ///< check the server's chain and name

    bool operator==(const TlsSettings&) const = default;
};

/// The client side of TLS (1.2 or newer). Reads its files and makes its OpenSSL context at first
/// use, so that one that is never used costs nothing. Not thread-safe.
class TlsClient {
  public:
    explicit TlsClient(TlsSettings settings = TlsSettings());
    ~TlsClient();
    TlsClient(const TlsClient&) = delete;
    TlsClient& operator=(const TlsClient&) = delete;

    /// Reads the files now. `invalid_argument` names the file that is missing or wrong.
    Status prepare();
    /// Connects and shakes hands within `timeout`. `host` is what the certificate must name, and is
    /// sent to the server unless it is an address. Fails as connect_tcp and prepare() do, and with
    /// `unavailable` when the handshake fails or the certificate does not hold. A server that
    /// refuses our certificate may say so only in answer to the first request.
    Awaitable<Result<std::unique_ptr<Stream>>> connect(std::string host, std::uint16_t port,
                                                       std::chrono::milliseconds timeout);
    [[nodiscard]] const TlsSettings& settings() const { return settings_; }
    /// The same for clients that trust and are the same: their connections may stand for each
    /// other.
    [[nodiscard]] const std::string& identity();

  private:
    struct Context;
    TlsSettings settings_;
    std::string identity_;
    std::unique_ptr<Context> context_;
};

}  // namespace opensandbox::net
