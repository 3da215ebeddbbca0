#include "egress/guard/guards.hpp"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace opensandbox::egress {

namespace {

constexpr std::chrono::seconds kTick{5};

template <class Map, class Key>
GuardPtr look_up(const Map& map, const Key& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
}

dns::Verdict unguarded() {
    dns::Verdict verdict;
    verdict.reason = kUnguarded;
    return verdict;
}

}  // namespace

Guards::Guards() : links_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

void Guards::add(GuardPtr guard) {
    by_id_[guard->identity.id] = guard;
    by_link_[guard->filtered.place.link] = guard;
    by_client_[guard->identity.client] = std::move(guard);
}

void Guards::remove(const SandboxGuard& guard) {
    const std::string id = guard.identity.id;
    const std::string link = guard.filtered.place.link;
    by_client_.erase(guard.identity.client);
    by_link_.erase(link);
    by_id_.erase(id);
}

GuardPtr Guards::of_id(std::string_view id) const {
    return look_up(by_id_, id);
}

GuardPtr Guards::of_link(std::string_view link) const {
    return look_up(by_link_, link);
}

GuardPtr Guards::of_client(ClientId client) const {
    return look_up(by_client_, client);
}

std::optional<ClientId> Guards::identify(const dns::Arrival& arrival) const {
    if (arrival.interface == 0) return std::nullopt;
    // Asked each time, in less than a microsecond: indices are given anew and links renamed.
    ifreq named{};
    named.ifr_ifindex = static_cast<int>(arrival.interface);
    if (::ioctl(links_.get(), SIOCGIFNAME, &named) != 0) return std::nullopt;
    const GuardPtr guard = of_link(named.ifr_name);
    if (!guard) return std::nullopt;
    const auto& own = guard->filtered.place.addresses;
    if (std::ranges::find(own, arrival.peer) == own.end()) return std::nullopt;
    return guard->identity.client;
}

std::vector<GuardPtr> Guards::all() const {
    std::vector<GuardPtr> guards;
    guards.reserve(by_id_.size());
    for (const auto& [id, guard] : by_id_)
        guards.push_back(guard);
    return guards;
}

Awaitable<void> tend(PacketFilter& filter, std::function<std::vector<GuardPtr>()> all) {
    while (true) {
        co_await net::sleep_for(kTick);
        const auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none) co_return;
        filter.tend();
        for (const GuardPtr& guard : all())
            guard->auditor.tell_omitted();
    }
}

dns::Verdict HostNameGate::judge(dns::ClientId client, std::string_view name, std::uint16_t type) {
    const GuardPtr guard = guards_.of_client(client);
    return guard ? guard->names.judge(client, name, type) : unguarded();
}

dns::Verdict HostNameGate::judge_chain(dns::ClientId client, const std::vector<std::string>& names,
                                       std::uint16_t type) {
    const GuardPtr guard = guards_.of_client(client);
    return guard ? guard->names.judge_chain(client, names, type) : unguarded();
}

bool HostNameGate::allows_inner(dns::ClientId client, std::string_view name,
                                const net::Address& address) {
    const GuardPtr guard = guards_.of_client(client);
    return guard && guard->names.allows_inner(client, name, address);
}

}  // namespace opensandbox::egress
