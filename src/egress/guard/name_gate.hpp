#pragma once

#include "egress/dns/gate.hpp"
#include "egress/policy/policy_store.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

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

}  // namespace opensandbox::egress
