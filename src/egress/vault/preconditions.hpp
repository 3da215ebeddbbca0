#pragma once

#include "net/address_block.hpp"

#include <optional>
#include <string_view>
#include <vector>

/// What must be so before a vault is written (network contract 1.9, 1.3). Pure.
namespace opensandbox::egress {

/// What the vault's promises rest on.
struct VaultConditions {
    bool api_token = false;          ///< the API asks for a token
    bool interception = false;       ///< connections are intercepted
    bool verified_upstreams = true;  ///< certificates of servers are checked
    bool ready = false;              ///< the interceptor runs
    bool filtering = false;          ///< packets are filtered: mode dns+nft
};

/// The text of the 412 reply for the first that is missing.
std::optional<std::string_view> missing_condition(const VaultConditions& conditions);

/// How a request came.
struct WriteTransport {
    net::Address peer;
    bool tls = false;
    /// X-Forwarded-Proto, "" when there is none.
    std::string_view forwarded_proto;
    /// X-Forwarded-For, "" when there is none; its last entry is whom the peer had it from.
    std::string_view forwarded_for;
};

/// Whether secrets may be sent so: over TLS, from this host, or by way of a proxy on this host or a
/// trusted one that says it had them over TLS. A proxy on this host that had them in clear must
/// have had them from this host as well. For when REQUIRE_TLS is on; else the reply is 426 with
/// kNeedsTls.
bool is_private_transport(const WriteTransport& transport,
                          const std::vector<net::AddressBlock>& trusted_proxies);

inline constexpr std::string_view kNeedsTls = "credential vault writes require TLS";

}  // namespace opensandbox::egress
