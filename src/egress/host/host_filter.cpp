#include "egress/host/host_filter.hpp"

#include "base/log.hpp"
#include "egress/enforcement/learning.hpp"

#include <algorithm>

namespace opensandbox::egress {

HostFilter::HostFilter(asio::any_io_executor executor, asio::thread_pool& pool,
                       rules::HostTable table, const Guards& guards)
    : cutter_(std::move(executor), pool), table_(std::move(table)), guards_(guards) {}

Status HostFilter::add(SandboxGuard& guard) {
    const std::string& link = guard.identity.link;
    if (leftovers_.contains(link)) remove(link);
    if (leftovers_.contains(link)) {
        return Error(ErrorCode::unavailable,
                     "link \"" + link + "\": the rules of its last sandbox are still there");
    }
    const PolicyPtr& policy = guard.policies.current();
    const rules::GuardedSandbox sandbox(link, guard.identity.addresses);
    return settle(guard, policy,
                  table_.add(sandbox, packet_rules(*policy, guard.packet), granted_by(policy)));
}

Status HostFilter::enforce(SandboxGuard& guard, const PolicyPtr& policy) {
    if (guard.released) return Error(ErrorCode::not_found, "the sandbox is gone");
    return settle(guard, policy,
                  table_.set_policy(guard.identity.link, packet_rules(*policy, guard.packet),
                                    granted_by(policy)));
}

Status HostFilter::settle(SandboxGuard& guard, const PolicyPtr& policy,
                          Result<rules::ConnectionCut> cut) {
    if (!cut) {
        ++counts_.failed_policies;
        return cut.error();
    }
    ++counts_.updates;
    guard.in_force = policy;
    cutter_.cut(
        std::move(*cut),
        [this, alive = std::weak_ptr(alive_),
         link = guard.identity.link]() -> std::optional<rules::ConnectionCut> {
            if (alive.expired()) return std::nullopt;
            return table_.cut(link);
        },
        !guard.packet.intercepted_ports.empty());
    return {};
}

void HostFilter::remove(const std::string& link) {
    if (auto cut = take_out(link)) cutter_.cut(std::move(*cut), nullptr, false);
}

std::optional<rules::ConnectionCut> HostFilter::take_out(const std::string& link) {
    auto cut = table_.remove_sandbox(link);
    if (!cut) {
        log::error("rules of a sandbox that is gone could not be removed",
                   {{"link", link}, {"error", cut.error().message()}});
        leftovers_.insert(link);
        return std::nullopt;
    }
    leftovers_.erase(link);
    return std::move(*cut);
}

Awaitable<Status> HostFilter::learn(dns::ClientId client, std::string name,
                                    std::vector<dns::LearnedAddress> addresses,
                                    std::shared_ptr<const dns::VerdictScope> scope) {
    const auto granted = std::dynamic_pointer_cast<const GrantedPorts>(scope);
    const GuardPtr guard = guards_.of_client(client);
    if (!granted || !guard) co_return Error(ErrorCode::not_found, "the sandbox is gone");
    Status learned = learn_now(*guard, name, addresses, granted->ports);
    if (!learned) {
        ++counts_.failed_learning;
    } else if (!log_skip_.skips(name)) {
        log::info("name resolved", {{"opensandbox.event", "egress.outbound"},
                                    {"target.host", name},
                                    {"target.ips", join_addresses(addresses)},
                                    {"sandbox_id", guard->identity.id}});
    }
    co_return learned;
}

Status HostFilter::learn_now(SandboxGuard& guard, const std::string& name,
                             const std::vector<dns::LearnedAddress>& addresses,
                             const PortSet& granted) {
    const EffectivePolicy& policy = *guard.in_force;
    const OpenableAddresses openable = openable_addresses(policy, addresses, granted);
    const std::vector<rules::Scope> scopes = learned_scopes(policy, granted);
    for (const auto& [lifetime, of_lifetime] : openable) {
        Status learned = table_.learn(guard.identity.link, name, of_lifetime, scopes, lifetime);
        if (!learned) return learned;
        ++counts_.updates;
    }
    note_resolved(guard.resolved, name, openable);
    return {};
}

bool HostFilter::leads_to(const SandboxGuard& guard, std::string_view name,
                          const net::Address& address) const {
    if (guard.resolved.leads_to(name, address, ResolvedNames::Time::clock::now())) return true;
    const std::vector<std::string> names = table_.learned().names(guard.identity.link, address);
    return std::ranges::find(names, name) != names.end();
}

void HostFilter::tend() {
    table_.expire();
    const std::set<std::string> again = leftovers_;
    for (const std::string& link : again)
        remove(link);
}

}  // namespace opensandbox::egress
