#include "egress/enforcement/sidecar_filter.hpp"

#include "base/log.hpp"
#include "egress/enforcement/learning.hpp"
#include "egress/enforcement/name_gate.hpp"

#include <algorithm>
#include <utility>

namespace opensandbox::egress {

SidecarFilter::SidecarFilter(asio::any_io_executor executor, asio::thread_pool& pool,
                             rules::SidecarTable table, PacketPolicySettings settings)
    : cutter_(std::move(executor), pool),
      table_(std::move(table)),
      settings_(std::move(settings)) {}

Status SidecarFilter::enforce(const PolicyPtr& policy) {
    auto cutting = table_.set_policy(packet_rules(*policy, settings_), granted_by(policy));
    if (!cutting) {
        ++counts_.failed_policies;
        return cutting.error();
    }
    ++counts_.updates;
    policy_ = policy;
    cutter_.cut(
        std::move(*cutting),
        [this, alive = std::weak_ptr(alive_)]() -> std::optional<rules::ConnectionCut> {
            if (alive.expired()) return std::nullopt;
            return table_.cut();
        },
        !settings_.intercepted_ports.empty());
    return {};
}

Awaitable<Status> SidecarFilter::learn(dns::ClientId, std::string name,
                                       std::vector<dns::LearnedAddress> addresses,
                                       std::shared_ptr<const dns::VerdictScope> scope) {
    const auto granted = std::dynamic_pointer_cast<const GrantedPorts>(scope);
    if (!granted || !policy_) {
        co_return Error(ErrorCode::internal, "there is no policy in force");
    }
    Status learned = learn_now(name, addresses, granted->ports);
    if (!learned) {
        ++counts_.failed_learning;
    } else if (on_resolved) {
        on_resolved(name, join_addresses(addresses));
    }
    co_return learned;
}

Status SidecarFilter::learn_now(const std::string& name,
                                const std::vector<dns::LearnedAddress>& addresses,
                                const PortSet& granted) {
    const OpenableAddresses by_lifetime = openable_addresses(*policy_, addresses, granted);
    if (settings_.filtering) {
        const std::vector<rules::Scope> scopes = learned_scopes(*policy_, granted);
        for (const auto& [lifetime, of_lifetime] : by_lifetime) {
            Status learned = table_.learn(name, of_lifetime, scopes, lifetime);
            if (!learned) return learned;
            ++counts_.updates;
        }
    }
    note_resolved(resolved_, name, by_lifetime);
    return {};
}

bool SidecarFilter::leads_to(std::string_view name, const net::Address& address) const {
    if (resolved_.leads_to(name, address, ResolvedNames::Time::clock::now())) return true;
    // What an earlier sidecar learned.
    const std::vector<std::string> names = table_.learned().names({}, address);
    return std::ranges::find(names, name) != names.end();
}

void SidecarFilter::tend() {
    table_.expire();
    auto links = rules::outer_links();
    if (!links) return;
    if (Status set = table_.set_links(std::move(*links)); !set) {
        log::warn("raw frames at new links are not stopped", {{"error", set.error().message()}});
    }
}

}  // namespace opensandbox::egress
