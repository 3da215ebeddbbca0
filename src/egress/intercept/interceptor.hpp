#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "egress/intercept/core/audit.hpp"
#include "egress/intercept/core/dialer.hpp"
#include "egress/intercept/core/gate.hpp"
#include "egress/intercept/core/original_destination.hpp"
#include "egress/intercept/core/relay.hpp"
#include "egress/intercept/core/request_hook.hpp"
#include "egress/intercept/tls/certificate_authority.hpp"
#include "egress/intercept/tls/upstream_tls.hpp"
#include "net/socket_stream.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace opensandbox::egress {

/// What is done with a hello whose true name may be hidden (ECH). Browsers send what looks so to
/// every server, so that refusing them all breaks them.
enum class EncryptedHello : std::uint8_t {
    /// Interception goes on under the visible name, and a hidden one comes to nothing; but no such
    /// connection is passed through unseen. Where credentials decide what is intercepted it is, and
    /// gets none.
    terminate,
    deny,
    pass,  ///< only the visible name counts, also for passing through
};

struct InterceptorSettings {
    RelayLimits limits;
    DialSettings dial;
    UpstreamTlsSettings upstream;
    EncryptedHello encrypted_hello = EncryptedHello::terminate;
    /// See RequestRules.
    bool allow_other_hosts = false;
    std::size_t cached_leaves = 1024;
    std::size_t max_connections = 1024;  ///< of one client; more are reset
    /// Of those, connections that are decrypted where credentials decide it: less, so that others
    /// get through. More are reset, never passed through.
    std::size_t max_decrypted = 768;
    /// For requests on connections whose host has no credential any more.
    std::chrono::milliseconds retirement{30'000};
    std::chrono::milliseconds hello_timeout{10'000};      ///< for the first bytes to be enough
    std::chrono::milliseconds handshake_timeout{10'000};  ///< with the client
};

/// What interception needs of others; pointers are borrowed and outlive it.
struct InterceptorParties {
    InterceptGate* gate = nullptr;
    RequestHook* hook = nullptr;      ///< null: requests are not changed
    InterceptAudit* audit = nullptr;  ///< null: nobody watches
    /// Which sandbox an accepted connection comes from; an error resets it.
    std::function<Result<ClientId>(int fd)> client_of;
    OriginalDestination original_destination = redirected_destination;
};

/// Transparent interception of HTTP and HTTPS: takes connections that were redirected to it, and
/// relays what the policy allows. TLS and plain HTTP are told apart by their first bytes. One
/// object serves one event loop; several may share a port (SO_REUSEPORT). Not thread-safe.
class Interceptor {
  public:
    static Result<std::unique_ptr<Interceptor>> make(asio::any_io_executor executor,
                                                     InterceptorSettings settings,
                                                     CertificateAuthority authority,
                                                     InterceptorParties parties);
    ~Interceptor();
    Interceptor(const Interceptor&) = delete;
    Interceptor& operator=(const Interceptor&) = delete;

    /// Accepts on a listening TCP socket until close().
    Status serve(UniqueFd listener);
    /// Stops accepting and cuts every connection.
    void close();
    /// After a change of policy: asks the gate again about every open connection of a client, and
    /// cuts those that it denies now, whatever flows on them. Requests are judged anew anyway.
    void recheck(ClientId client);
    /// After a change of what credentials are bound to: ends what was decrypted for one that is
    /// gone, requests in flight within InterceptorSettings::retirement.
    void retire_unbound(ClientId client);
    [[nodiscard]] std::size_t open_connections() const;
    /// What sandboxes are to trust, PEM.
    [[nodiscard]] const std::string& authority_pem() const;

  private:
    struct Core;
    explicit Interceptor(std::shared_ptr<Core> core);
    std::shared_ptr<Core> core_;
};

}  // namespace opensandbox::egress
