#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "net/netlink_message.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace opensandbox::net {

/// A netlink socket to the kernel, bound to the network namespace it was opened in; close-on-exec.
/// Synchronous. Not thread-safe.
class NetlinkSocket {
  public:
    /// `protocol` is NETLINK_ROUTE, NETLINK_NETFILTER, ...
    static Result<NetlinkSocket> open(int protocol);

    /// Sends one request or dump, waits for the kernel's verdict, and returns the data messages
    /// that came before it, back to back and aligned (`split_netlink_datagram` takes them apart).
    /// A dump that a change interrupted is asked again. `what` begins the message of an error,
    /// which is of Error::from_errno (a missing link is not_found) and ends with the kernel's own
    /// explanation when there is one.
    Result<std::vector<std::uint8_t>> exchange(NetlinkMessage& message, std::string_view what);

    /// Sends one datagram of many messages, which the kernel handles before the call returns, and
    /// collects the verdicts it queued.
    Result<std::vector<NetlinkVerdict>> transact(NetlinkBytes datagram, std::string_view what);

    /// For requests of other kinds that sockets take. Borrowed.
    [[nodiscard]] int descriptor() const { return fd_.get(); }

  private:
    NetlinkSocket(UniqueFd fd, std::uint32_t port);
    /// For one large datagram.
    void make_room(std::size_t size);
    Status send(NetlinkBytes bytes, std::string_view what);
    /// One datagram from the kernel, valid until the next call; empty when MSG_DONTWAIT found none.
    Result<NetlinkBytes> receive(int flags, std::string_view what);
    struct Answer;
    Result<Answer> collect(std::uint32_t sequence, std::string_view what);

    UniqueFd fd_;
    std::uint32_t port_;
    std::uint32_t sequence_ = 0;
    std::size_t room_ = 0;
    std::vector<std::uint8_t> buffer_;
};

/// The verdict as an error: the operation, the kernel's explanation if any, the errno's text.
Error netlink_error(const NetlinkVerdict& verdict, std::string_view what);

}  // namespace opensandbox::net
