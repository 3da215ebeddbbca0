#pragma once

#include "egress/dns/address_sink.hpp"
#include "egress/enforcement/connection_cutter.hpp"
#include "egress/enforcement/packet_policy.hpp"
#include "egress/enforcement/resolved_names.hpp"
#include "egress/policy_store/policy_store.hpp"
#include "egress/rules/sidecar_table.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace opensandbox::egress {

/// The packet filter of a sandbox behind policy and DNS proxy: puts policies in force, opens what
/// allowed names resolve to, cuts connections on another thread. One event loop; the pool outlives
/// it.
class SidecarFilter final : public dns::AddressSink {
  public:
    struct Counts {
        std::uint64_t updates = 0;  ///< policies put in force, and answers learned
        std::uint64_t failed_policies = 0;
        std::uint64_t failed_learning = 0;
    };

    SidecarFilter(asio::any_io_executor executor, asio::thread_pool& pool,
                  rules::SidecarTable table, PacketPolicySettings settings);

    /// Puts a policy in force: addresses of names that it does not grant are closed, and their
    /// connections cut soon after.
    Status enforce(const PolicyPtr& policy);

    Awaitable<Status> learn(dns::ClientId client, std::string name,
                            std::vector<dns::LearnedAddress> addresses,
                            std::shared_ptr<const dns::VerdictScope> scope) override;

    /// Whether a name was resolved to an address here.
    [[nodiscard]] bool leads_to(std::string_view name, const net::Address& address) const;
    /// To be called every few seconds: new links, what expired, connections that were not cut yet.
    void tend();

    /// Told of what allowed names resolved to, once an answer (addresses with commas between). May
    /// be empty.
    std::function<void(const std::string& name, const std::string& addresses)> on_resolved;

    [[nodiscard]] rules::SidecarTable& table() { return table_; }
    [[nodiscard]] const Counts& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t connections_cut() const { return cutter_.count(); }

  private:
    Status learn_now(const std::string& name, const std::vector<dns::LearnedAddress>& addresses,
                     const PortSet& granted);

    ConnectionCutter cutter_;
    rules::SidecarTable table_;
    PacketPolicySettings settings_;
    PolicyPtr policy_;
    ResolvedNames resolved_;
    Counts counts_;
    std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace opensandbox::egress
