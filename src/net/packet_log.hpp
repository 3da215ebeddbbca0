#pragma once

#include "base/error.hpp"
#include "net/netlink_message.hpp"
#include "net/stream.hpp"

#include <boost/asio/ip/address.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::net {

/// A packet that a rule told of (nflog).
struct LoggedPacket {
    std::string prefix;         ///< as the rule says
    std::string link;           ///< it came by; empty for this host's own
    std::string outgoing_link;  ///< it was to leave by; empty when not known there
    boost::asio::ip::address source;
    boost::asio::ip::address destination;
    std::uint8_t protocol = 0;      ///< IPPROTO_TCP, ...; behind IPv6's extension headers
    std::uint16_t source_port = 0;  ///< of TCP, UDP and SCTP; 0 otherwise and in later fragments
    std::uint16_t destination_port = 0;
    std::chrono::system_clock::time_point time;
    /// How many were lost before it, since those that came before were read too slowly.
    std::uint64_t lost = 0;
};

/// Reads what rules of the network namespace it was opened in tell to one group. The kernel holds
/// about 500 small entries for a reader that is late, and then drops; entries count up, so that the
/// reader knows.
class PacketLog {
  public:
    /// permission_denied when the group has another reader, or without CAP_NET_ADMIN; unsupported
    /// in a kernel without nflog.
    static Result<std::unique_ptr<PacketLog>> open(asio::any_io_executor executor,
                                                   std::uint16_t group);
    ~PacketLog();
    PacketLog(const PacketLog&) = delete;
    PacketLog& operator=(const PacketLog&) = delete;

    /// Waits for the next; cancelled once close() was called. One reader at a time.
    Awaitable<Result<LoggedPacket>> next();
    void close();

  private:
    struct State;
    explicit PacketLog(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// An entry as it comes from the kernel.
struct LogEntry {
    LoggedPacket packet;
    std::uint32_t incoming_index = 0;
    std::uint32_t outgoing_index = 0;
    std::uint32_t sequence = 0;
};

/// Reads an NFULNL_MSG_PACKET message; empty when it is another, or malformed, or of a packet that
/// is neither IPv4 nor IPv6.
std::optional<LogEntry> parse_log_entry(NetlinkBytes message);

}  // namespace opensandbox::net
