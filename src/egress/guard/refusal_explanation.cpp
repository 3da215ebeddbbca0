#include "egress/guard/refusal_explanation.hpp"

#include <netinet/in.h>

namespace opensandbox::egress {

namespace {

constexpr std::string_view kPolicyRefusal = "egress-policy";

}  // namespace

std::string explain_refusal(const EffectivePolicy& policy, const net::LoggedPacket& packet) {
    if (!packet.prefix.starts_with(kPolicyRefusal)) return packet.prefix;
    Transport transport = Transport::other;
    if (packet.protocol == IPPROTO_TCP) transport = Transport::tcp;
    if (packet.protocol == IPPROTO_UDP) transport = Transport::udp;
    const Verdict verdict =
        policy.judge_address(packet.destination, transport, packet.destination_port);
    return verdict.allowed ? packet.prefix : to_string(verdict.reason, false);
}

}  // namespace opensandbox::egress
