#pragma once

#include "egress/dns/address_sink.hpp"
#include "egress/policy_store/policy_store.hpp"

#include <chrono>
#include <map>
#include <vector>

namespace opensandbox::egress {

/// The ports at which a name was allowed.
struct GrantedPorts final : public dns::VerdictScope {
    explicit GrantedPorts(PortSet granted) : ports(std::move(granted)) {}
    PortSet ports;
};

/// The policy as the DNS proxy of a sandbox asks it. The store outlives it.
class NameGate final : public dns::Gate {
  public:
    explicit NameGate(const PolicyStore& store) : store_(store) {}

    dns::Verdict judge(dns::ClientId client, std::string_view name, std::uint16_t type) override;
    dns::Verdict judge_chain(dns::ClientId client, const std::vector<std::string>& names,
                             std::uint16_t type) override;
    bool allows_inner(dns::ClientId client, std::string_view name,
                      const net::Address& address) override;

  private:
    [[nodiscard]] dns::Verdict verdict(const NameVerdict& judged) const;

    const PolicyStore& store_;
};

/// Of what a name resolved to, the addresses that a policy lets it open, by their lifetimes: what
/// rules for addresses deny, the packet filter refuses before it looks at what was learned.
using OpenableAddresses = std::map<std::chrono::seconds, std::vector<net::Address>>;
OpenableAddresses openable_addresses(const EffectivePolicy& policy,
                                     const std::vector<dns::LearnedAddress>& addresses,
                                     const PortSet& granted);

}  // namespace opensandbox::egress
