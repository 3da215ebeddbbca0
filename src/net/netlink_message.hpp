#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct nlmsghdr;

namespace opensandbox::net {

using NetlinkBytes = std::span<const std::uint8_t>;

/// One outgoing netlink message, built field by field in a buffer of fixed size. A field that does
/// not fit makes the whole message invalid, which `valid` tells at the end: builders need no check
/// after each step. Integers are in host order, as rtnetlink wants them.
class NetlinkMessage {
  public:
    static constexpr std::size_t kCapacity = 2048;

    NetlinkMessage(std::uint16_t type, std::uint16_t flags);

    /// Room for the family's fixed header, zeroed. Only as the first field of a message or a nest;
    /// the reference holds as long as the message.
    template <class Header>
    Header& header() {
        return *static_cast<Header*>(extra(sizeof(Header)));
    }
    NetlinkMessage& put(std::uint16_t type, NetlinkBytes bytes);
    NetlinkMessage& put_u32(std::uint16_t type, std::uint32_t value);
    /// With its terminating zero.
    NetlinkMessage& put_text(std::uint16_t type, std::string_view text);
    /// Opens a nested attribute; its place is what `end` takes.
    std::size_t begin(std::uint16_t type);
    NetlinkMessage& end(std::size_t place);

    [[nodiscard]] bool valid() const { return valid_; }
    [[nodiscard]] nlmsghdr& head();
    [[nodiscard]] NetlinkBytes bytes() const;

  private:
    void* extra(std::size_t size);

    alignas(8) std::array<std::uint8_t, kCapacity> buffer_{};
    bool valid_ = true;
};

/// How the kernel answered one message: 0 or an errno, and its own explanation if any.
struct NetlinkVerdict {
    std::uint32_t sequence = 0;
    int error = 0;
    std::string explanation;
};

/// Reads an NLMSG_ERROR message (an acknowledgement when its error is 0) or the NLMSG_DONE that
/// ends a dump, with the explanation of an extended acknowledgement. `message` is one whole
/// message, aligned to 4 bytes. Empty when it is neither or is malformed.
std::optional<NetlinkVerdict> parse_netlink_verdict(NetlinkBytes message);

/// Calls `each` with every whole message of a datagram (aligned to 4 bytes) until it returns false.
/// False when it meets bytes that are no message.
bool split_netlink_datagram(NetlinkBytes datagram, const std::function<bool(NetlinkBytes)>& each);

/// The payload of the first attribute of this type in a run of attributes; empty optional when
/// there is none. Stops at the first malformed one.
std::optional<NetlinkBytes> find_netlink_attribute(NetlinkBytes attributes, std::uint16_t type);

/// The text of an attribute's payload up to its first zero byte, at most `limit` bytes.
std::string netlink_text(NetlinkBytes payload, std::size_t limit);

}  // namespace opensandbox::net
