#pragma once

#include "base/unique_fd.hpp"
#include "egress/dns/arrival.hpp"
#include "egress/dns/datagrams.hpp"
#include "egress/dns/resolver.hpp"

#include <boost/asio/ip/udp.hpp>

#include <memory>

namespace opensandbox::egress::dns {

/// Serves queries on one UDP socket; replies leave from the address that was asked. What can be
/// answered at once goes out in the batch it came in.
class UdpListener : public std::enable_shared_from_this<UdpListener> {
  public:
    UdpListener(asio::any_io_executor executor, std::shared_ptr<Resolver> resolver,
                Identify identify);

    /// Takes a bound socket of either family.
    Status start(UniqueFd socket);
    void stop();
    [[nodiscard]] asio::ip::udp::endpoint endpoint() const;

  private:
    static Awaitable<void> run(std::shared_ptr<UdpListener> self);
    static Awaitable<void> finish(std::shared_ptr<UdpListener> self, PendingQuery pending,
                                  ReturnPath path);
    void serve(std::size_t count);

    asio::any_io_executor executor_;
    std::shared_ptr<Resolver> resolver_;
    Identify identify_;
    asio::ip::udp::socket socket_;
    Datagrams datagrams_;
    bool stopped_ = false;
};

}  // namespace opensandbox::egress::dns
