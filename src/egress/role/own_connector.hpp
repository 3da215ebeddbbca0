#pragma once

#include "egress/dns/forwarder.hpp"
#include "egress/intercept/core/dialer.hpp"
#include "egress/intercept/tls/upstream_tls.hpp"
#include "http/client.hpp"
#include "net/address_block.hpp"

#include <memory>
#include <string>
#include <vector>

namespace opensandbox::egress {

/// Connections of egress control itself, such as to a webhook: names are asked of the upstream
/// resolvers, since no sandbox's policy is for them.
class OwnConnector : public std::enable_shared_from_this<OwnConnector> {
  public:
    /// Whether it may connect there.
    using Permits = std::function<bool(const net::Address& address)>;
    /// Without `permits` it may connect to all.
    OwnConnector(asio::any_io_executor executor, dns::UpstreamSettings upstream, DialSettings dial,
                 Permits permits = {});
    ~OwnConnector() { names_->stop(); }
    OwnConnector(const OwnConnector&) = delete;
    OwnConnector& operator=(const OwnConnector&) = delete;

    /// Over TLS where the origin has it; its host must be what the certificate names. `unavailable`
    /// for a name or a server that does not answer.
    static Awaitable<Result<std::unique_ptr<net::Stream>>> connect(
        std::shared_ptr<OwnConnector> self, http::Origin origin);

  private:
    Awaitable<Result<std::vector<net::Address>>> resolve(std::string host);
    Awaitable<Result<std::unique_ptr<net::Stream>>> secure(net::StreamSocket socket,
                                                           http::Origin origin);

    std::shared_ptr<dns::Forwarder> names_;
    Dialer dialer_;
    Permits permits_;
    std::unique_ptr<UpstreamTls> tls_;  ///< made at first use
};

}  // namespace opensandbox::egress
