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
inline constexpr std::string_view log_prefix = "egress-";
/// "policy", "private", ...
std::string_view to_string(Reason reason);
const std::vector<Reason>& all_reasons();

/// Refusals are told to readers of this group of nflog, at most so many for each sandbox.
struct LogLimits {
    LogLimits() = default;
    explicit LogLimits(std::uint16_t to) : group(to) {}

    std::uint16_t group = 0;
    std::uint64_t per_second = 5;
    std::uint32_t burst = 10;
    std::uint32_t bytes = 96;  ///< of a packet, from its IP header on
};

/// Which set holds what was learned, and how a packet is looked up in it.
struct LearnedSets {
    std::string v4;
    std::string v6;
    bool by_link = false;  ///< the key begins with the link the packet came by

    /// Of the set for one family.
    [[nodiscard]] net::nft::SetLayout layout(bool v6) const;
};

/// Leaves the destination as it is; in the nat chains' table.
inline constexpr const char* leave_chain = "leave";

/// Writes chains of one table into a transaction.
class RuleWriter {
  public:
    RuleWriter(net::nft::Transaction& transaction, std::string table, LearnedSets learned)
        : transaction_(transaction), table_(std::move(table)), learned_(std::move(learned)) {}

    /// The chains that refuse: one for each reason, all ending in a quick refusal. `limits_set` is
    /// a dynamic set by link; empty: one limit for all. Chains are emptied first.
    void write_refusals(const LogLimits& log, const std::string& limits_set);
    /// New connections as PolicyRules describes: to `allowed` those that are, to the chain of a
    /// reason those that are not.
    void write_filter(const std::string& chain, const PolicyRules& rules,
                      const std::string& allowed);
    /// For chains of type nat: to `divert` those that the interceptor is to have; others go to
    /// leave_chain or return.
    void write_diversion(const std::string& chain, const PolicyRules& rules,
                         const std::string& divert);

    /// To the end of a chain of the table.
    void rule(std::string_view chain, const net::nft::Rule& rule);
    void chain(const std::string& chain);
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

/// A key of a learned set; `link` empty where keys have none.
net::nft::SetKey learned_key(const std::string& link, const IpAddress& address, const Scope& scope);

}  // namespace opensandbox::egress::rules
