#pragma once

#include "egress/dns/address_sink.hpp"
#include "egress/filter/connection_cutter.hpp"
#include "egress/filter/packet_policy.hpp"
#include "egress/filter/packet_table.hpp"
#include "egress/filter/resolved_names.hpp"
#include "egress/policy/policy_store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace opensandbox::egress {

/// A sandbox behind the packet filter.
struct FilteredSandbox {
    FilteredSandbox(rules::GuardedSandbox where, PacketPolicySettings said, std::size_t most_names)
        : place(std::move(where)), settings(std::move(said)), resolved(most_names) {}

    rules::GuardedSandbox place;
    PacketPolicySettings settings;
    ResolvedNames resolved;
    PolicyPtr in_force;     ///< as the packet filter has it; null: none yet
    bool released = false;  ///< its link may be another's by now
};

/// The packet filter behind the policies of sandboxes and the DNS proxy: puts policies in force,
/// opens what allowed names resolve to, cuts connections on another thread. One event loop; what it
/// borrows outlives it.
class PacketFilter final : public dns::AddressSink {
  public:
    struct Counts {
        std::uint64_t updates = 0;  ///< policies put in force, and answers learned
        std::uint64_t failed_policies = 0;
        std::uint64_t failed_learning = 0;
    };
    /// The sandbox that a query is from; null for one that is gone.
    using Find = std::function<FilteredSandbox*(dns::ClientId client)>;

    PacketFilter(asio::any_io_executor executor, asio::thread_pool& pool,
                 std::unique_ptr<PacketTable> table, Find find);

    /// From now on the sandbox is judged by the policy; what the table held of its link before goes
    /// as far as the policy does not grant it.
    Status add(FilteredSandbox& sandbox, const PolicyPtr& policy);
    /// Puts another policy in force: addresses of names that it does not grant are closed, and
    /// their connections cut soon after. `not_found` once the sandbox was released.
    Status enforce(FilteredSandbox& sandbox, const PolicyPtr& policy);
    /// Keeps nothing of a link. Its connections are for the caller to cut, with cut_now(). What
    /// fails is tried again with each tend(), and before the link is guarded again.
    std::optional<rules::ConnectionCut> take_out(const std::string& link);
    Awaitable<void> cut_now(rules::ConnectionCut what) { return cutter_.cut_now(std::move(what)); }
    /// Both, without waiting for the connections.
    void remove(const std::string& link);

    Awaitable<Status> learn(dns::ClientId client, std::string name,
                            std::vector<dns::LearnedAddress> addresses,
                            std::shared_ptr<const dns::VerdictScope> scope) override;
    /// Whether a name was resolved to an address for a sandbox, also by a process before this one.
    [[nodiscard]] bool leads_to(const FilteredSandbox& sandbox, std::string_view name,
                                const net::Address& address) const;
    /// To be called every few seconds: new links, what expired, what could not be removed yet.
    void tend();

    /// Told of what allowed names resolved to, once an answer (addresses with commas between). May
    /// be empty.
    std::function<void(dns::ClientId client, const std::string& name, const std::string& addresses)>
        on_resolved;

    [[nodiscard]] PacketTable& table() const { return *table_; }
    [[nodiscard]] const Counts& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t connections_cut() const { return cutter_.count(); }

  private:
    /// Counts what the table made of a policy, and cuts what that no longer grants.
    Status settle(FilteredSandbox& sandbox, const PolicyPtr& policy,
                  Result<rules::ConnectionCut> cut);
    Status learn_now(FilteredSandbox& sandbox, const std::string& name,
                     const std::vector<dns::LearnedAddress>& addresses, const PortSet& granted);

    ConnectionCutter cutter_;
    std::unique_ptr<PacketTable> table_;
    Find find_;
    std::set<std::string> leftovers_;  ///< links whose removal failed
    Counts counts_;
    std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace opensandbox::egress
