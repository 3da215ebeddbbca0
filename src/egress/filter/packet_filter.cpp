#include "egress/filter/packet_filter.hpp"

#include "base/log.hpp"
#include "egress/filter/learning.hpp"

#include <algorithm>
#include <utility>

namespace opensandbox::egress {

PacketFilter::PacketFilter(asio::any_io_executor executor, asio::thread_pool& pool,
                           std::unique_ptr<PacketTable> table, Find find)
    : cutter_(std::move(executor), pool), table_(std::move(table)), find_(std::move(find)) {}

Status PacketFilter::add(FilteredSandbox& sandbox, const PolicyPtr& policy) {
    const std::string& link = sandbox.place.link;
    if (leftovers_.contains(link)) remove(link);
    if (leftovers_.contains(link)) {
        return Error(ErrorCode::unavailable,
                     "link \"" + link + "\": the rules of its last sandbox are still there");
    }
    return settle(
        sandbox, policy,
        table_->add(sandbox.place, packet_rules(*policy, sandbox.settings), granted_by(policy)));
}

Status PacketFilter::enforce(FilteredSandbox& sandbox, const PolicyPtr& policy) {
    if (sandbox.released) return Error(ErrorCode::not_found, "the sandbox is gone");
    return settle(sandbox, policy,
                  table_->set_policy(sandbox.place.link, packet_rules(*policy, sandbox.settings),
                                     granted_by(policy)));
}

Status PacketFilter::settle(FilteredSandbox& sandbox, const PolicyPtr& policy,
                            Result<rules::ConnectionCut> cut) {
    if (!cut) {
        ++counts_.failed_policies;
        return cut.error();
    }
    ++counts_.updates;
    sandbox.in_force = policy;
    cutter_.cut(
        std::move(*cut),
        [this, alive = std::weak_ptr(alive_),
         link = sandbox.place.link]() -> std::optional<rules::ConnectionCut> {
            if (alive.expired()) return std::nullopt;
            return table_->cut(link);
        },
        !sandbox.settings.intercepted_ports.empty());
    return {};
}

void PacketFilter::remove(const std::string& link) {
    if (auto cut = take_out(link)) cutter_.cut(std::move(*cut), nullptr, false);
}

std::optional<rules::ConnectionCut> PacketFilter::take_out(const std::string& link) {
    auto cut = table_->remove(link);
    if (!cut) {
        log::error("rules of a sandbox that is gone could not be removed",
                   {{"link", link}, {"error", cut.error().message()}});
        leftovers_.insert(link);
        return std::nullopt;
    }
    leftovers_.erase(link);
    return std::move(*cut);
}

Awaitable<Status> PacketFilter::learn(dns::ClientId client, std::string name,
                                      std::vector<dns::LearnedAddress> addresses,
                                      std::shared_ptr<const dns::VerdictScope> scope) {
    const auto granted = std::dynamic_pointer_cast<const GrantedPorts>(scope);
    FilteredSandbox* const sandbox = find_(client);
    if (!granted || sandbox == nullptr) {
        co_return Error(ErrorCode::not_found, "the sandbox is gone");
    }
    Status learned = learn_now(*sandbox, name, addresses, granted->ports);
    if (!learned) {
        ++counts_.failed_learning;
    } else if (on_resolved) {
        on_resolved(client, name, join_addresses(addresses));
    }
    co_return learned;
}

Status PacketFilter::learn_now(FilteredSandbox& sandbox, const std::string& name,
                               const std::vector<dns::LearnedAddress>& addresses,
                               const PortSet& granted) {
    const EffectivePolicy& policy = *sandbox.in_force;
    const OpenableAddresses openable = openable_addresses(policy, addresses, granted);
    if (sandbox.settings.filtering) {
        const std::vector<rules::Scope> scopes = learned_scopes(policy, granted);
        for (const auto& [lifetime, of_lifetime] : openable) {
            Status learned = table_->learn(sandbox.place.link, name, of_lifetime, scopes, lifetime);
            if (!learned) return learned;
            ++counts_.updates;
        }
    }
    note_resolved(sandbox.resolved, name, openable);
    return {};
}

bool PacketFilter::leads_to(const FilteredSandbox& sandbox, std::string_view name,
                            const net::Address& address) const {
    if (sandbox.resolved.leads_to(name, address, ResolvedNames::Time::clock::now())) return true;
    const std::vector<std::string> names = table_->learned().names(sandbox.place.link, address);
    return std::ranges::find(names, name) != names.end();
}

void PacketFilter::tend() {
    table_->tend();
    const std::set<std::string> again = leftovers_;
    for (const std::string& link : again)
        remove(link);
}

}  // namespace opensandbox::egress
