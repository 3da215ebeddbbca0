#pragma once

#include "egress/dns/arrival.hpp"

#include <sys/socket.h>

#include <memory>
#include <string>
#include <string_view>

namespace opensandbox::egress::dns {

/// Where a datagram came from and by which of our addresses, so that the reply leaves from there.
struct ReturnPath {
    sockaddr_storage peer{};
    socklen_t peer_size = 0;
    Arrival arrival;
};

/// Datagrams taken from and put on a socket many at a time. The socket reports arrivals
/// (report_arrival()) and is non-blocking.
class Datagrams {
  public:
    static constexpr std::size_t kBatch = 32;
    /// Of a query; longer ones are cut, and then malformed.
    static constexpr std::size_t kQuery = 2048;

    Datagrams();
    ~Datagrams();
    Datagrams(const Datagrams&) = delete;
    Datagrams& operator=(const Datagrams&) = delete;

    /// Takes what is there, at most kBatch; 0 when nothing is, or on an error.
    std::size_t receive(int socket);
    [[nodiscard]] std::string_view message(std::size_t i) const;
    [[nodiscard]] const Arrival& arrival(std::size_t i) const;
    [[nodiscard]] ReturnPath path(std::size_t i) const;

    /// Where to write the reply to a datagram before queue().
    std::string& reply(std::size_t i);
    void queue(std::size_t i);
    /// Sends what was queued; what the socket does not take is lost, as datagrams are.
    void flush(int socket);

  private:
    struct Buffers;
    std::unique_ptr<Buffers> buffers_;
    std::size_t queued_ = 0;
};

/// Sends one datagram back.
void send_back(int socket, const ReturnPath& path, std::string_view message);

}  // namespace opensandbox::egress::dns
