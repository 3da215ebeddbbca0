#pragma once

#include "base/unique_fd.hpp"
#include "egress/dns/arrival.hpp"
#include "egress/dns/resolver.hpp"
#include "net/stream.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>

namespace opensandbox::egress::dns {

/// Serves queries on one listening TCP socket. Queries of a connection are answered as their
/// answers come (RFC 7766); connections of one client and of all are limited.
class TcpListener : public std::enable_shared_from_this<TcpListener> {
  public:
    TcpListener(asio::any_io_executor executor, std::shared_ptr<Resolver> resolver,
                Identify identify);

    /// Takes a socket of either family that listens.
    Status start(UniqueFd socket);
    void stop();
    [[nodiscard]] asio::ip::tcp::endpoint endpoint() const;

  private:
    static Awaitable<void> run(std::shared_ptr<TcpListener> self);
    struct Connection;
    static Awaitable<void> serve(std::shared_ptr<TcpListener> self,
                                 std::shared_ptr<Connection> connection);
    static Awaitable<void> finish(std::shared_ptr<TcpListener> self,
                                  std::shared_ptr<Connection> connection, PendingQuery pending);
    static Awaitable<void> send(std::shared_ptr<Connection> connection, std::string reply);
    void begin(asio::ip::tcp::socket socket);

    asio::any_io_executor executor_;
    std::shared_ptr<Resolver> resolver_;
    Identify identify_;
    asio::ip::tcp::acceptor acceptor_;
    bool stopped_ = false;
};

}  // namespace opensandbox::egress::dns
