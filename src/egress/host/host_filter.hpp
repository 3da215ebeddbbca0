#pragma once

#include "egress/dns/address_sink.hpp"
#include "egress/enforcement/connection_cutter.hpp"
#include "egress/guard/guards.hpp"
#include "egress/rules/host_table.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace opensandbox::egress {

/// The packet filter of a host behind the policies of its sandboxes and the DNS proxy: puts
/// policies in force, opens what allowed names resolve to, cuts connections on another thread. One
/// event loop; what it borrows outlives it.
class HostFilter final : public dns::AddressSink {
  public:
    struct Counts {
        std::uint64_t updates = 0;  ///< policies put in force, and answers learned
        std::uint64_t failed_policies = 0;
        std::uint64_t failed_learning = 0;
    };

    HostFilter(asio::any_io_executor executor, asio::thread_pool& pool, rules::HostTable table,
               const Guards& guards);

    /// Names whose lookups are not logged.
    void skip_in_log(LogSkip skip) { log_skip_ = std::move(skip); }

    /// From now on the sandbox is judged by its policy; what the table held of its link before goes
    /// as far as the policy does not grant it.
    Status add(SandboxGuard& guard);
    /// Puts another policy in force. `not_found` once the sandbox was released.
    Status enforce(SandboxGuard& guard, const PolicyPtr& policy);
    /// Keeps nothing of a link. Its connections are for the caller to cut, with cut_now(). What
    /// fails is tried again with each tend(), and before the link is guarded again.
    std::optional<rules::ConnectionCut> take_out(const std::string& link);
    Awaitable<void> cut_now(rules::ConnectionCut what) { return cutter_.cut_now(std::move(what)); }
    /// Both, without waiting for the connections.
    void remove(const std::string& link);

    Awaitable<Status> learn(dns::ClientId client, std::string name,
                            std::vector<dns::LearnedAddress> addresses,
                            std::shared_ptr<const dns::VerdictScope> scope) override;
    /// Whether a name was resolved to an address for a sandbox, also under an earlier enforcer.
    [[nodiscard]] bool leads_to(const SandboxGuard& guard, std::string_view name,
                                const net::Address& address) const;
    /// To be called every few seconds: forgets what expired.
    void tend();

    [[nodiscard]] rules::HostTable& table() { return table_; }
    [[nodiscard]] const rules::HostTable& table() const { return table_; }
    [[nodiscard]] const Counts& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t connections_cut() const { return cutter_.count(); }

  private:
    /// Counts what the table made of a policy, and cuts what that no longer grants.
    Status settle(SandboxGuard& guard, const PolicyPtr& policy, Result<rules::ConnectionCut> cut);
    Status learn_now(SandboxGuard& guard, const std::string& name,
                     const std::vector<dns::LearnedAddress>& addresses, const PortSet& granted);

    ConnectionCutter cutter_;
    rules::HostTable table_;
    const Guards& guards_;
    std::set<std::string> leftovers_;  ///< links whose removal failed
    LogSkip log_skip_;
    Counts counts_;
    std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace opensandbox::egress
