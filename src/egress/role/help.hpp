#pragma once

#include <string_view>

namespace opensandbox::egress {

/// What `opensandbox egress --help` says before settings_help().
inline constexpr std::string_view kHelpBeforeSettings =
    R"(Usage: opensandbox egress [--supervised]
       opensandbox egress get|patch ...     commands about a sandbox ('egress get --help')

Controls what leaves a sandbox, from within its network namespace; needs CAP_NET_ADMIN there. With
--supervised, as the first process of a container, it is started again when it ends unasked.

Its environment, all of it optional. Each name begins with OPENSANDBOX_EGRESS_ unless it is whole:
)";

/// Then those, then this, then the variables of telemetry::otlp_help().
inline constexpr std::string_view kHelpBehindSettings =
    R"(
Targets of rules: api.example.com, *.example.com (not example.com itself), 203.0.113.7, 10.0.0.0/8,
fd00::/8, each with :443, :8000-8080, :53/udp behind it ([fd00::1]:443). The first rule that matches
a name decides; a rule that denies an address or its port beats all that allow it. {"action":
"allow", "target": "10.0.0.0/8", "ports": [80, 443]} is limited to TCP ports of an address or block,
without target to those of every address (mode dns+nft).

Metrics go to a collector of OTLP over HTTP where one is named:
)";

}  // namespace opensandbox::egress
