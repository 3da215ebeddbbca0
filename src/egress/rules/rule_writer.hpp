#pragma once

#include "egress/rules/policy_rules.hpp"
#include "net/nftables.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress::rules {

/// What the log of refusals says why: the prefix of its entries, behind "egress-".
enum class Reason : std::uint8_t {
    policy,  ///< by the policy
    private_range,
    dns_over_tls,
    doh,
    quic,
    protocol,     ///< neither TCP, UDP nor ICMP
    host,         ///< meant for an address of this host
    connections,  ///< too many at once
    quarantine,
    source,  ///< from an address that is not the sandbox's
};
inline constexpr std::string_view kLogPrefix = "egress-";
/// "policy", "private", ...
std::string_view to_string(Reason reason);
const std::vector<Reason>& all_reasons();

/// Refusals are told to readers of this group of nflog, at most so many for each sandbox.
struct LogLimits {
    std::uint16_t group = 0;
    std::uint64_t per_second = 5;
    std::uint32_t burst = 10;
    std::uint32_t bytes = 96;  ///< of a packet, from its IP header on
};

/// Which sets hold what was learned, one for each family, and how a packet is looked up in them.
struct LearnedSets {
    bool by_link = false;  ///< the key begins with the link the packet came by

    static const char* name(bool v6) { return v6 ? "learned6" : "learned4"; }
    [[nodiscard]] net::nft::SetLayout layout(bool v6) const;
};

/// What not every kernel has.
struct KernelParts {
    bool owned = true;   ///< tables that stay when their owner ends; Linux 6.9
    bool frames = true;  ///< chains for what leaves by a link; Linux 5.16
    bool zones = true;   ///< of connection tracking
};

// Chains that a policy's chains lead to.
inline constexpr const char* kAllowedChain = "allowed";
/// To the interceptor; of type nat, as the next.
inline constexpr const char* kDivertChain = "divert";
/// Leaves the destination as it is.
inline constexpr const char* kLeaveChain = "leave";

/// Writes chains of one table into a transaction.
class RuleWriter {
  public:
    RuleWriter(net::nft::Transaction& transaction, std::string table, LearnedSets learned)
        : transaction_(transaction), table_(std::move(table)), learned_(learned) {}

    void write_learned_sets();

    /// The chains that refuse: one for each reason, all ending in a quick refusal. `limits_set` is
    /// a dynamic set by link; empty: one limit for all. Chains are emptied first.
    void write_refusals(const LogLimits& log, const std::string& limits_set);
    /// New connections as PolicyRules describes: to kAllowedChain those that are, to the chain of a
    /// reason those that are not.
    void write_filter(const std::string& chain, const PolicyRules& rules);
    /// For chains of type nat: to kDivertChain those that the interceptor is to have; others go to
    /// kLeaveChain or return.
    void write_diversion(const std::string& chain, const PolicyRules& rules);
    /// Refuses what is neither TCP, UDP nor ICMP.
    void refuse_other_protocols(const std::string& chain);

    /// To the end of a chain of the table.
    void rule(std::string_view chain, const net::nft::Rule& rule);
    void chain(const std::string& chain);
    void set(const std::string& name, const net::nft::SetLayout& layout);
    /// One that the kernel calls, made if it is not there, and emptied.
    void base_chain(const char* name, const char* type, net::nft::Hook hook, std::int32_t priority);
    /// Made if it is not there, and emptied.
    void fresh_chain(const std::string& chain);
    [[nodiscard]] static std::string refusal(Reason reason);

  private:
    enum class Part : std::uint8_t { all, within_private, beyond_private };
    void write_prefixes(const std::string& chain, const std::vector<ScopedPrefix>& prefixes,
                        Part part, const std::string& to);
    void write_addresses(const std::string& chain, const Scope& scope,
                         const std::vector<Prefix>& prefixes, const std::string& to);
    void write_learned(const std::string& chain, const PolicyRules& rules, const std::string& to,
                       bool tcp_only);
    void write_doh(const std::string& chain, const PolicyRules& rules, const std::string& to,
                   bool tcp_only);

    net::nft::Transaction& transaction_;
    std::string table_;
    LearnedSets learned_;
};

}  // namespace opensandbox::egress::rules
