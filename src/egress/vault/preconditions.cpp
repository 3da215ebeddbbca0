#include "egress/vault/preconditions.hpp"

#include "http/fields.hpp"
#include "net/unmapped_address.hpp"

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

namespace {

bool ends_with_loopback(std::string_view forwarded_for) {
    std::string_view last = forwarded_for.substr(forwarded_for.rfind(',') + 1);
    while (last.starts_with(' '))
        last.remove_prefix(1);
    boost::system::error_code failed;
    const net::Address client = boost::asio::ip::make_address(last, failed);
    return !failed && net::unmapped(client).is_loopback();
}

}  // namespace

bool is_private_transport(const WriteTransport& transport,
                          const std::vector<net::AddressBlock>& trusted_proxies) {
    if (transport.tls) return true;
    const net::Address peer = net::unmapped(transport.peer);
    const bool here = peer.is_loopback();
    if (transport.forwarded_proto.empty() && transport.forwarded_for.empty()) return here;
    if (http::equal_ignoring_case(transport.forwarded_proto, "https")) {
        return here || std::ranges::any_of(trusted_proxies, [&](const net::AddressBlock& block) {
                   return block.contains(peer);
               });
    }
    return here && ends_with_loopback(transport.forwarded_for);
}

}  // namespace opensandbox::egress
