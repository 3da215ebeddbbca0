#pragma once

#include "agent/api/services.hpp"
#include "http/router.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// /proxy/{port}/…: passes requests and WebSockets to a service of the sandbox (execd 1.4).
void add_proxy_routes(http::Router& router, Services& services);

/// Where a proxied request goes: the raw target without its prefix, and the port. Empty when the
/// path is no "/proxy/<1 to 65535>[/…]". Pure.
struct ProxyTarget {
    std::uint16_t port = 0;
    std::string target;
};
std::optional<ProxyTarget> proxy_target(std::string_view raw_target);

/// Takes every "/proxy/<own>" off the front of a target: the agent's API is below the path of its
/// own port, too, where clients of endpoints look for it. Pure.
void take_own_prefix(std::string& target, std::uint16_t own);

}  // namespace opensandbox::agent
