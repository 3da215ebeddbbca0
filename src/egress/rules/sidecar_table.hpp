#pragma once

#include "egress/rules/policy_table.hpp"
#include "egress/rules/sidecar_ruleset.hpp"

#include <string>
#include <vector>

namespace opensandbox::egress::rules {

/// Egress control of one sandbox from within its network namespace, against a root user without
/// CAP_NET_ADMIN. The table stays when the sidecar ends, however it ends: queries for names are
/// refused then, what was learned expires, and nothing else is allowed. The next sidecar takes it
/// over with all that it holds. Synchronous, as HostTable is, and as fast. Not thread-safe.
class SidecarTable : public PolicyTable {
  public:
    /// Takes over the network namespace of the calling thread, with this policy from the first
    /// moment on. unsupported for a kernel without nf_tables, permission_denied without
    /// CAP_NET_ADMIN or when another sidecar that lives owns the table, not_found for a link that
    /// is not there.
    static Result<SidecarTable> open(SidecarOptions options, PolicyRules rules);

    /// Judges the frames of these links from now on, for links that came later; in the namespace's
    /// thread, as open().
    Status set_links(std::vector<std::string> links);
    /// Puts another policy in force. Connections and learned addresses stay, but those that it does
    /// not allow. Those whose names are not known (from an earlier sidecar) are asked for as "".
    Result<ConnectionCut> set_policy(PolicyRules rules, const StillAllowed& still_allowed);
    /// Opens addresses that a name stands for; as HostTable::learn().
    Status learn(const std::string& name, const std::vector<IpAddress>& addresses,
                 const std::vector<Scope>& scopes, std::chrono::seconds lifetime);
    Result<ConnectionCut> revoke(const StillAllowed& still_allowed);
    /// Of what is not allowed at this moment.
    [[nodiscard]] ConnectionCut cut() const;

    [[nodiscard]] Judgement judge(const IpAddress& destination, std::uint8_t protocol,
                                  std::uint16_t port) const;
    /// Raw frames that were dropped at the links so far.
    Result<std::uint64_t> raw_frames();
    /// Raw frames (AF_PACKET) are stopped at the links; false before Linux 5.16. Without this, and
    /// against AF_XDP in any case, the sandbox must not have CAP_NET_RAW.
    [[nodiscard]] bool stops_raw_frames() const { return parts_.frames; }

  private:
    SidecarTable(SidecarOptions options, Sockets sockets);
    Status take_over();
    Status write_base();
    Status check_links(const std::vector<std::string>& links) const;
    Status put_in_force(SharedRules rules);

    SidecarOptions options_;
    std::string policy_;  ///< digest of what is in force; empty: nothing yet
    SharedRules rules_;
    std::uint32_t secret_ = 0;
};

/// Removes the tables: everything is open then. For tests and uninstalling, not for a sidecar's
/// end.
Status remove_sidecar_table(const std::string& table);

}  // namespace opensandbox::egress::rules
