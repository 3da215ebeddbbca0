#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

struct nlmsghdr;

namespace opensandbox::net {

/// One outgoing netlink message, built field by field in a buffer of fixed size. A field that does
/// not fit makes the whole message invalid, which `valid` tells at the end: builders need no check
/// after each step. Integers are in host order, as rtnetlink wants them.
class NetlinkMessage {
  public:
    static constexpr std::size_t capacity = 2048;

    NetlinkMessage(std::uint16_t type, std::uint16_t flags);

    /// Room for the family's fixed header, zeroed. Only as the first field of a message or a nest.
    template <class Header>
    Header& header() {
        return *static_cast<Header*>(extra(sizeof(Header)));
    }
    NetlinkMessage& put(std::uint16_t type, std::span<const std::uint8_t> bytes);
    NetlinkMessage& put_u32(std::uint16_t type, std::uint32_t value);
    /// With its terminating zero.
    NetlinkMessage& put_text(std::uint16_t type, std::string_view text);
    /// Opens a nested attribute; its place is what `end` takes.
    std::size_t begin(std::uint16_t type);
    NetlinkMessage& end(std::size_t place);

    [[nodiscard]] bool valid() const { return valid_; }
    [[nodiscard]] nlmsghdr& head();
    [[nodiscard]] std::span<const std::uint8_t> bytes() const;

  private:
    void* extra(std::size_t size);

    alignas(8) std::array<std::uint8_t, capacity> buffer_;
    bool valid_ = true;
};

/// How the kernel answered one message: 0 or an errno, and its own explanation if any.
struct NetlinkVerdict {
    std::uint32_t sequence = 0;
    int error = 0;
    std::string explanation;
};

/// Reads an NLMSG_ERROR message (an acknowledgement when the error is 0), with the explanation of
/// extended acknowledgements. `message` is one whole message. Empty when it is malformed.
std::optional<NetlinkVerdict> parse_netlink_verdict(std::span<const std::uint8_t> message);

/// Calls `each` with every whole message of a datagram, until it returns false. False when bytes
/// are left over that are no message.
bool split_netlink_datagram(std::span<const std::uint8_t> datagram,
                            const std::function<bool(std::span<const std::uint8_t>)>& each);

/// A netlink socket to the kernel, bound to the network namespace it was opened in; close-on-exec.
/// Synchronous. Not thread-safe.
class NetlinkSocket {
  public:
    /// `protocol` is NETLINK_ROUTE, NETLINK_NETFILTER, ...
    static Result<NetlinkSocket> open(int protocol);

    using OnMessage = std::function<void(std::span<const std::uint8_t>)>;

    /// Sends one request and waits for its acknowledgement; data messages that come before it go to
    /// `on_data`. `what` begins the message of an error.
    Status request(NetlinkMessage& message, std::string_view what, const OnMessage& on_data = {});
    /// Sends one dump request and hands every message of the answer to `on_data`. Starts over, after
    /// calling `restart`, when the kernel says that the answer was interrupted by a change.
    Status dump(NetlinkMessage& message, std::string_view what, const OnMessage& on_data,
                const std::function<void()>& restart);
    /// Sends one datagram of many messages, which the kernel handles before the call returns, and
    /// collects the verdicts that it queued. io when the answer cannot be read.
    Result<std::vector<NetlinkVerdict>> transact(std::span<const std::uint8_t> datagram,
                                                 std::string_view what);
    std::uint32_t next_sequence() { return ++sequence_; }

  private:
    explicit NetlinkSocket(UniqueFd fd);
    Status send(std::span<const std::uint8_t> bytes, std::string_view what);
    Result<std::span<const std::uint8_t>> receive(int flags, std::string_view what);

    UniqueFd fd_;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint8_t> buffer_;
};

}  // namespace opensandbox::net
