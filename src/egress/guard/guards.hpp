#pragma once

#include "egress/dns/arrival.hpp"
#include "egress/guard/sandbox_guard.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opensandbox::egress {

/// Which sandboxes are guarded, and whose a packet, a query or a connection is. To be made on a
/// thread of the network namespace that the links are in.
class Guards {
  public:
    Guards();

    void add(GuardPtr guard);
    void remove(const SandboxGuard& guard);

    /// Null for those that are not there.
    [[nodiscard]] GuardPtr of_id(std::string_view id) const;
    [[nodiscard]] GuardPtr of_link(std::string_view link) const;
    [[nodiscard]] GuardPtr of_client(ClientId client) const;
    /// By the link that it came by, as that is named now, and only from an address of the sandbox.
    [[nodiscard]] std::optional<ClientId> identify(const dns::Arrival& arrival) const;
    [[nodiscard]] std::vector<GuardPtr> all() const;
    [[nodiscard]] std::size_t size() const { return by_id_.size(); }

  private:
    std::map<std::string, GuardPtr, std::less<>> by_id_;
    std::map<std::string, GuardPtr, std::less<>> by_link_;
    std::unordered_map<ClientId, GuardPtr> by_client_;
    UniqueFd links_;  ///< a socket, to ask for links' names by
};

/// What the filter and the audits of all guards have to do every few seconds, until cancelled.
Awaitable<void> tend(PacketFilter& filter, std::function<std::vector<GuardPtr>()> all);

/// Why who is not guarded gets nothing.
inline constexpr const char* kUnguarded = "the sandbox is not guarded";

/// The DNS proxy serves all sandboxes: each query is judged by the policy of the one that it is
/// from.
class HostNameGate final : public dns::Gate {
  public:
    explicit HostNameGate(const Guards& guards) : guards_(guards) {}

    dns::Verdict judge(dns::ClientId client, std::string_view name, std::uint16_t type) override;
    dns::Verdict judge_chain(dns::ClientId client, const std::vector<std::string>& names,
                             std::uint16_t type) override;
    bool allows_inner(dns::ClientId client, std::string_view name,
                      const net::Address& address) override;

  private:
    const Guards& guards_;  // outlives it
};

}  // namespace opensandbox::egress
