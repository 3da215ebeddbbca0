#include "egress/dns/name_spread.hpp"

#include <algorithm>
#include <functional>

namespace opensandbox::egress::dns {

namespace {

constexpr std::size_t kMaxDomains = 256;
constexpr std::chrono::seconds kWindow{60};

}  // namespace

bool NameSpread::admit(std::string_view domain, std::string_view name, std::size_t limit,
                       Time now) {
    if (limit == 0) return true;
    auto found = domains_.find(std::string(domain));
    if (found == domains_.end()) {
        if (domains_.size() >= kMaxDomains) make_room();
        found = domains_.emplace(std::string(domain), Domain{now, {}}).first;
    }
    Domain& counted = found->second;
    if (now - counted.start >= kWindow) {
        counted.start = now;
        counted.names.clear();
    }
    const std::size_t hash = std::hash<std::string_view>()(name);
    if (counted.names.contains(hash)) return true;
    if (counted.names.size() >= limit) return false;
    counted.names.insert(hash);
    return true;
}

bool NameSpread::idle(Time now) const {
    return std::all_of(domains_.begin(), domains_.end(),
                       [&](const auto& each) { return now - each.second.start >= kWindow; });
}

/// Forgets the domain with the fewest names, so that no crowd of domains hides one that is used
/// much.
void NameSpread::make_room() {
    const auto least = std::min_element(
        domains_.begin(), domains_.end(),
        [](const auto& a, const auto& b) { return a.second.names.size() < b.second.names.size(); });
    if (least != domains_.end()) domains_.erase(least);
}

}  // namespace opensandbox::egress::dns
