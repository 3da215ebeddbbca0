#pragma once

#include "egress/policy/address_index.hpp"
#include "egress/policy/name_index.hpp"
#include "egress/policy/overlay.hpp"
#include "egress/policy/policy.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// Where a verdict comes from.
enum class Origin : std::uint8_t { overlay_deny, overlay_allow, user, learned, default_action };

/// "deny.always", "allow.always", "policy", "learned", "default".
std::string_view to_string(Origin origin);

/// Why: for the audit log.
struct Reason {
    Origin origin = Origin::default_action;
    std::size_t index = 0;       ///< of the rule in its file or policy, from 0
    const Rule* rule = nullptr;  ///< of the policy that judged; null for the default and a learned
                                 ///< address
};

/// `policy rule 3: deny *.example.com`, `default: deny`.
std::string to_string(const Reason& reason, bool allowed);

/// One address and port, or one name and port.
struct Verdict {
    bool allowed = false;
    Reason reason;
};

/// A name, for all ports at once.
struct NameVerdict {
    /// Whether the name may be resolved: something is granted.
    bool allowed = false;
    /// Of what is granted, the first rule that granted it; of a refusal, the first rule for the
    /// name, or the default.
    Reason reason;
    /// What a learned address may be used for.
    PortSet granted;
    /// What a rule denies (not the default), and the first rule that does.
    PortSet refused;
    Reason refused_by;
    /// The name that decided when a chain was judged: its index.
    std::size_t decided_by = 0;
};

/// deny.always, allow.always and the user's rules as one list, indexed; immutable. Pure: safe to
/// read from several threads.
///
/// Names (network contract 1.2): for every port the first rule in the list that speaks of the name
/// and covers the port decides; without one, the default action. A rule without a port covers all.
/// Addresses: a rule that denies beats a learned address, that beats a rule that allows, that beats
/// the default action, whatever ports they are limited to; rules for names have no part in it.
class EffectivePolicy {
  public:
    EffectivePolicy(Overlay overlay, Policy user);
    EffectivePolicy(const EffectivePolicy&) = delete;
    EffectivePolicy& operator=(const EffectivePolicy&) = delete;

    [[nodiscard]] Action default_action() const { return user_.default_action; }
    /// Without the overlay, as GET shows it.
    [[nodiscard]] const Policy& user() const { return user_; }
    /// All rules, in order of precedence; one with ports is as many as PolicyRule::expand() makes.
    [[nodiscard]] const std::vector<Rule>& rules() const { return rules_; }
    [[nodiscard]] Reason reason(std::size_t rule) const;

    /// A name as a query holds it: case and one dot at its end do not count; `\` escapes as
    /// net/dns writes them.
    [[nodiscard]] NameVerdict judge_name(std::string_view name) const;
    /// The same for one port: what an intercepted connection asks.
    [[nodiscard]] Verdict judge_name(std::string_view name, Transport transport,
                                     std::uint16_t port) const;
    /// A name and the aliases (CNAME) that its answer went through, the queried name first. The
    /// queried name decides; what a rule denies (not the default) for one of the aliases is taken
    /// away.
    [[nodiscard]] NameVerdict judge_chain(std::span<const std::string> names) const;

    /// `learned` is whether an allowed name gave this address for this port.
    [[nodiscard]] Verdict judge_address(const net::Address& address, Transport transport,
                                        std::uint16_t port, bool learned = false) const;

    /// What rules for addresses allow of this one, after what they deny.
    [[nodiscard]] PortSet allowed_by_address(const net::Address& address) const;
    /// What rules for addresses deny of this one.
    [[nodiscard]] PortSet denied_by_address(const net::Address& address) const;
    /// For what an address may be learned from a name that was granted `granted`: never what rules
    /// deny; and of an address that is_special() only what a rule allows for it or for a network
    /// within the same special one (rebinding protection and its opt-out: 10.0.0.0/8 opens,
    /// 0.0.0.0/0 does not).
    [[nodiscard]] PortSet learnable(const net::Address& address, const PortSet& granted) const;

  private:
    [[nodiscard]] NameVerdict by_rule(std::uint32_t index) const;
    [[nodiscard]] NameVerdict by_ports(std::string_view name) const;
    [[nodiscard]] NameVerdict by_default() const;
    template <class Each>
    void each_stretch(const std::vector<std::uint32_t>& hits, Transport transport,
                      const Each& each) const;

    Policy user_;
    std::size_t overlay_deny_ = 0;
    std::size_t overlay_allow_ = 0;
    std::vector<std::uint32_t> written_;  ///< for each of the user's in rules_, which of user_
    std::vector<Rule> rules_;
    NameIndex names_;
    AddressIndex denied_;
    AddressIndex allowed_;
};

}  // namespace opensandbox::egress
