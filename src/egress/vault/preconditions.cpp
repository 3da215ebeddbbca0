#include "egress/vault/preconditions.hpp"

#include "http/fields.hpp"

#include <algorithm>

namespace opensandbox::egress {

std::optional<std::string_view> missing_condition(const VaultConditions& conditions) {
    if (!conditions.api_token) return "credential vault requires an egress API token";
    if (!conditions.interception) return "credential vault requires transparent interception";
    if (!conditions.verified_upstreams) {
        return "credential vault requires verified upstream certificates";
    }
    if (!conditions.filtering) return "credential vault requires enforcement mode dns+nft";
    if (!conditions.ready) return "credential vault requires a ready interceptor";
    return std::nullopt;
}

bool is_private_transport(const WriteTransport& transport,
                          const std::vector<AddressBlock>& trusted_proxies) {
    if (transport.tls) return true;
    // A socket of both families shows IPv4 peers as IPv6 ones.
    Address peer = transport.peer;
    if (peer.is_v6() && peer.to_v6().is_v4_mapped()) {
        peer = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, peer.to_v6());
    }
    if (peer.is_loopback()) return true;
    return http::equal_ignoring_case(transport.forwarded_proto, "https") &&
           std::ranges::any_of(trusted_proxies,
                               [&](const AddressBlock& block) { return block.contains(peer); });
}

}  // namespace opensandbox::egress
