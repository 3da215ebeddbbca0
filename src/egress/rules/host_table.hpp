#pragma once

#include "egress/rules/host_ruleset.hpp"
#include "egress/rules/policy_table.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::egress::rules {

/// A sandbox as the packet filter sees it.
struct GuardedSandbox {
    std::string link;                  ///< the host's end of its link; 1 to 15 bytes
    std::vector<IpAddress> addresses;  ///< what it may send from
};

/// Egress control of a host's sandboxes, from outside of them: one table of the packet filter, made
/// once and then edited, so that no packet meets a state between. It stays when its owner ends, and
/// a foreign flush of the ruleset does not touch it; the next to open it takes it over with all
/// that it holds. Sandboxes that were not added are not touched.
///
/// Synchronous: a call takes 10 to 500 us, but a policy that no other sandbox has takes 6 ms for
/// each 1,000 prefixes, and to revoke addresses 4 ms for each 1,000. What takes a permission away
/// returns the cut of the connections that lost it, for the caller to run on another thread. Not
/// thread-safe. Needs CAP_NET_ADMIN.
class HostTable : public PolicyTable {
  public:
    /// unsupported for a kernel without nf_tables, permission_denied when another process that
    /// lives owns the table.
    static Result<HostTable> open(HostOptions options);
    /// Removes the tables of that name, whose owner has ended; success also when there are none.
    static Status remove(const std::string& table);

    /// From now on its packets are judged by the policy. One that the table holds already, from
    /// before it was opened, keeps what it learned of names that are `still_allowed`.
    Result<ConnectionCut> add(const GuardedSandbox& sandbox, PolicyRules rules,
                              const StillAllowed& still_allowed);
    /// Puts another policy in force. Connections and learned addresses stay, but those that it does
    /// not allow.
    Result<ConnectionCut> set_policy(const std::string& link, PolicyRules rules,
                                     const StillAllowed& still_allowed);
    /// Refuses everything, queries for names and open connections too, until it is ended. Only
    /// answers to what this host itself opened go on.
    Status set_quarantine(const std::string& link, bool on);
    /// No longer judged, nothing kept: for links that vanish. To be called before the link's name
    /// is used again. Success also when it is not there.
    Result<ConnectionCut> remove_sandbox(const std::string& link);
    /// Sandboxes found in the table when it was opened, and not added since.
    [[nodiscard]] std::vector<std::string> unclaimed() const;

    /// Opens addresses that a name stands for, each with these scopes, for so long; longer when it
    /// was opened for longer. Scopes are unions of the policy's `learned_scopes`. When this fails
    /// the name must not be answered.
    Status learn(const std::string& link, const std::string& name,
                 const std::vector<IpAddress>& addresses, const std::vector<Scope>& scopes,
                 std::chrono::seconds lifetime);
    /// Takes what names are no longer allowed.
    Result<ConnectionCut> revoke(const std::string& link, const StillAllowed& still_allowed);
    /// Of what a sandbox is not allowed at this moment; nothing for one that is gone.
    [[nodiscard]] std::optional<ConnectionCut> cut(const std::string& link) const;

    [[nodiscard]] bool guards(const std::string& link) const { return sandboxes_.contains(link); }
    /// A foreign flush of the ruleset does not touch the table; false before Linux 6.9.
    [[nodiscard]] bool is_protected() const { return parts_.owned; }
    /// Whether a connection would be allowed now.
    [[nodiscard]] Judgement judge(const std::string& link, const IpAddress& destination,
                                  std::uint8_t protocol, std::uint16_t port) const;
    /// Packets dropped because their source was not the sandbox's.
    Result<std::uint64_t> spoofed() {
        return packets(net::nft::Family::inet, HostRuleset::kSpoofedCounter);
    }

  private:
    struct Guarded {
        std::vector<IpAddress> addresses;
        std::string policy;     ///< digest of the chain in force; empty: none
        std::string diversion;  ///< likewise of the chain for the interceptor; empty: none
        SharedRules rules;
        bool claimed = false;
    };

    HostTable(HostOptions options, Sockets sockets);
    Status write_base();
    Status adopt();
    Status adopt_sandboxes();
    Result<Guarded*> find(const std::string& link);
    Result<std::vector<std::string>> links_in_force(net::nft::Family family);
    Status put_in_force(const std::string& link, Guarded& sandbox, SharedRules rules);
    [[nodiscard]] ConnectionCut cut_of(const std::string& link, const Guarded& sandbox) const;

    HostOptions options_;
    std::map<std::string, Guarded> sandboxes_;
};

}  // namespace opensandbox::egress::rules
