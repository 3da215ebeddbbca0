#include "egress/policy/special_blocks.hpp"

namespace opensandbox::egress {

const std::vector<net::AddressBlock>& special_blocks() {
    static const std::vector<net::AddressBlock> special = [] {
        std::vector<net::AddressBlock> blocks;
        for (const char* text :
             {// This network, private, carriers' NAT, loopback, link-local with metadata services.
              "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
              // Private, protocol assignments, benchmarks; multicast, reserved, broadcast.
              "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
              // Unspecified, loopback and IPv4-compatible; IPv4-mapped and -translated.
              "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96",
              // IPv4 carried inside: NAT64, Teredo, 6to4. Discarded.
              "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "100::/64",
              // Unique local, link-local, site-local, multicast.
              "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"}) {
            blocks.push_back(net::AddressBlock::parse(text).value());
        }
        return without_overlap(std::move(blocks));
    }();
    return special;
}

std::optional<net::AddressBlock> special_block_of(const net::Address& address) {
    const net::AddressBlock single(address);
    for (const net::AddressBlock& block : special_blocks()) {
        if (block.contains(single)) return block;
    }
    return std::nullopt;
}

bool is_special(const net::Address& address) {
    return special_block_of(address).has_value();
}

}  // namespace opensandbox::egress
