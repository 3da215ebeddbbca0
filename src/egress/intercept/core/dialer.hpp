#pragma once

#include "base/error.hpp"
#include "egress/intercept/core/gate.hpp"
#include "egress/intercept/core/upstream_proxy.hpp"
#include "net/socket_stream.hpp"
#include "net/tls_context.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::egress {

/// How connections to the outside are made.
struct DialSettings {
    /// Called with each new socket before it connects (marks, namespaces' devices). A failure ends
    /// the attempt.
    std::function<Status(int fd, ClientId client)> prepare_socket;
    std::chrono::milliseconds timeout{10'000};  ///< for all of connecting, the proxy included
    /// With one, nothing is ever connected to directly.
    std::optional<UpstreamProxy> proxy;
    /// Whom an https proxy's certificate is checked against.
    net::TlsSettings proxy_tls;
};

class Dialer {
  public:
    explicit Dialer(DialSettings settings);
    ~Dialer();

    /// Connects to `target`, or has the proxy connect to `host` at its port (an empty host: to the
    /// address). Fails with `unavailable`, `timeout` or `bad_gateway`.
    Awaitable<Result<net::StreamSocket>> dial(ClientId client, Endpoint target, std::string host);

  private:
    Awaitable<Result<net::StreamSocket>> connect(ClientId client, Endpoint target,
                                                 std::chrono::milliseconds timeout);
    Awaitable<Result<net::StreamSocket>> connect_once(ClientId client, Endpoint target,
                                                      std::chrono::milliseconds timeout,
                                                      bool& was_refused);
    Awaitable<Result<net::StreamSocket>> dial_proxy(ClientId client, std::string target);
    Awaitable<Result<net::StreamSocket>> secure_proxy(std::shared_ptr<net::StreamSocket> socket,
                                                      std::string target);

    DialSettings settings_;
    net::TlsContextHandle proxy_context_;
};

}  // namespace opensandbox::egress
