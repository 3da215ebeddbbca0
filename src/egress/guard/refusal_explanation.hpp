#pragma once

#include "egress/policy/effective_policy.hpp"
#include "net/packet_log.hpp"

#include <string>

namespace opensandbox::egress {

/// Why the packet filter refused a packet: the rule, where it was the policy, else what the log
/// says. Pure.
std::string explain_refusal(const EffectivePolicy& policy, const net::LoggedPacket& packet);

}  // namespace opensandbox::egress
