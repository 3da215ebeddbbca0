// Answers of netlink: datagrams, verdicts, links, counters, elements, connections, logged packets.
#include "net/conntrack.hpp"
#include "net/netlink_message.hpp"
#include "net/nftables.hpp"
#include "net/packet_log.hpp"
#include "net/route_socket.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

using namespace opensandbox::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // As large as the input to the byte, so that reading past it shows.
    const std::vector<std::uint8_t> datagram(data, data + size);
    std::size_t taken = 0;
    split_netlink_datagram(datagram, [&](NetlinkBytes message) {
        taken += message.size();
        if (const auto verdict = parse_netlink_verdict(message)) {
            if (verdict->error < 0 || verdict->error > 4095) __builtin_trap();
        }
        if (const auto link = parse_link(message)) {
            if (link->index <= 0 || link->name.size() > 15) __builtin_trap();
        }
        (void)route_source(message);
        nft::parse_counter(message);
        for (const auto& element : nft::parse_elements(message))
            if (element.key.size() > size) __builtin_trap();
        (void)parse_connection(message);
        if (const auto entry = parse_log_entry(message))
            if (entry->packet.prefix.size() > 128) __builtin_trap();
        return true;
    });
    if (taken > size) __builtin_trap();

    for (std::uint16_t type = 0; type < 4; ++type)
        if (const auto payload = find_netlink_attribute(datagram, type)) netlink_text(*payload, 64);
    return 0;
}
