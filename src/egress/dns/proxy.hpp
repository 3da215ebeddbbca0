#pragma once

#include "egress/dns/resolver.hpp"
#include "egress/dns/tcp_listener.hpp"
#include "egress/dns/udp_listener.hpp"

#include <memory>
#include <vector>

namespace opensandbox::egress::dns {

/// The filtering DNS proxy (network 1.4): listeners of any number over one resolver, for one
/// sandbox or for all of a host. One event loop. Destruction stops it.
class Proxy {
  public:
    /// `invalid_argument` without upstreams, or for settings out of their range.
    static Result<std::unique_ptr<Proxy>> create(asio::any_io_executor executor,
                                                 ProxySettings settings, Neighbours neighbours);
    ~Proxy();
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;

    /// Serves UDP and TCP on an address and port; 0 lets the kernel choose one for both. IPv6
    /// sockets serve IPv6 only. Returns the port. May be called again for other addresses.
    Result<std::uint16_t> listen(const asio::ip::address& address, std::uint16_t port,
                                 const Identify& identify);
    /// Serve sockets that the caller made (transparent ones, those of another network namespace).
    /// The TCP one listens.
    Status serve_udp(UniqueFd socket, Identify identify);
    Status serve_tcp(UniqueFd socket, Identify identify);

    void stop();
    [[nodiscard]] Resolver& resolver() { return *resolver_; }
    [[nodiscard]] const Statistics& statistics() const { return resolver_->statistics(); }

  private:
    Proxy(asio::any_io_executor executor, ProxySettings settings, Neighbours neighbours);

    asio::any_io_executor executor_;
    std::shared_ptr<Resolver> resolver_;
    std::vector<std::shared_ptr<UdpListener>> udp_;
    std::vector<std::shared_ptr<TcpListener>> tcp_;
};

}  // namespace opensandbox::egress::dns
