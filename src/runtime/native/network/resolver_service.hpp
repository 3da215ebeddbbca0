#pragma once

#include "net/dns/message.hpp"
#include "net/dns/resolver_settings.hpp"
#include "net/ipv4_range.hpp"
#include "net/stream.hpp"
#include "runtime/native/network/network_names.hpp"

#include <boost/asio/ip/udp.hpp>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace opensandbox::runtime::native {

/// How the forwarder behaves; the defaults are the product's.
struct ResolverLimits {
    std::size_t queries = 1024;                ///< in flight at once
    std::size_t queries_of_one = 64;           ///< of one sandbox
    std::size_t connections = 256;             ///< over TCP
    std::size_t connections_of_one = 8;        ///< of one sandbox
    std::chrono::milliseconds patience{2000};  ///< with one upstream server
    int tries = 3;                             ///< over all of them
    std::chrono::seconds idle{10};             ///< that a TCP connection may be
};

/// A small forwarding resolver (RFC 5625): queries of sandboxes go to the servers of the host's
/// resolv.conf, which is read again when it changes; names of a shared network are answered here.
/// Queries from outside of the range are dropped, malformed ones answered as such. Nothing is kept.
/// One event loop; make it with std::make_shared.
class ResolverService : public std::enable_shared_from_this<ResolverService> {
  public:
    ResolverService(asio::any_io_executor executor, net::Ipv4Range range,
                    std::filesystem::path settings_file, std::uint16_t upstream_port = 53,
                    ResolverLimits limits = ResolverLimits());

    /// Serves on sockets that are bound; the TCP one listens.
    Status start(UniqueFd udp, UniqueFd tcp);
    void stop();
    [[nodiscard]] NetworkNames& names() { return names_; }

  private:
    class Turn;
    using Counts = std::map<net::Ipv4Address, std::size_t>;

    static Awaitable<void> serve_udp(std::shared_ptr<ResolverService> self);
    static Awaitable<void> serve_tcp(std::shared_ptr<ResolverService> self);
    static Awaitable<void> answer_udp(std::shared_ptr<ResolverService> self, std::string message,
                                      asio::ip::udp::endpoint client);
    static Awaitable<void> answer_tcp(std::shared_ptr<ResolverService> self,
                                      std::shared_ptr<net::Stream> client,
                                      net::Ipv4Address address);
    /// What to answer; empty when nothing is.
    Awaitable<std::string> resolve(net::Ipv4Address client, std::string message, bool tcp);
    Awaitable<std::string> ask(std::string message, net::dns::Query query, bool tcp);
    Awaitable<Result<std::string>> ask_udp(asio::ip::address server, std::string message,
                                           net::dns::Question question);
    Awaitable<Result<std::string>> ask_tcp(asio::ip::address server, std::string message,
                                           net::dns::Question question);
    const net::dns::ResolverSettings& settings();
    /// From the gateway's own address egress control asks, for all that it guards.
    [[nodiscard]] std::size_t most_queries_of(net::Ipv4Address client) const;
    [[nodiscard]] std::size_t most_connections_of(net::Ipv4Address client) const;

    asio::any_io_executor executor_;
    net::Ipv4Range range_;
    std::filesystem::path settings_file_;
    std::uint16_t upstream_port_;
    ResolverLimits limits_;
    NetworkNames names_;
    asio::ip::udp::socket udp_;
    std::unique_ptr<net::Listener> tcp_;
    Counts queries_;
    Counts connections_;
    std::size_t query_count_ = 0;
    std::size_t connection_count_ = 0;
    net::dns::ResolverSettings settings_;
    std::filesystem::file_time_type settings_time_{};
    std::chrono::steady_clock::time_point looked_at_{};
    bool stopped_ = false;
};

}  // namespace opensandbox::runtime::native
