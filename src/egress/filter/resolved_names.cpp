#include "egress/filter/resolved_names.hpp"

#include <algorithm>

namespace opensandbox::egress {

namespace {

/// Of one name; the oldest go.
constexpr std::size_t kMostAddresses = 256;

}  // namespace

void ResolvedNames::note(const std::string& name, const net::Address& address, Time until,
                         Time now) {
    if (names_.size() >= most_ && !names_.contains(name)) make_room(now);
    std::vector<Entry>& entries = names_[name];
    const auto found = std::ranges::find(entries, address, &Entry::address);
    if (found != entries.end()) {
        found->until = std::max(found->until, until);
        return;
    }
    std::erase_if(entries, [&](const Entry& entry) { return entry.until <= now; });
    if (entries.size() >= kMostAddresses) entries.erase(entries.begin());
    entries.push_back({address, until});
}

void ResolvedNames::make_room(Time now) {
    std::erase_if(names_, [&](const auto& item) {
        return std::ranges::all_of(item.second,
                                   [&](const Entry& entry) { return entry.until <= now; });
    });
    while (!names_.empty() && names_.size() >= most_)
        names_.erase(names_.begin());
}

bool ResolvedNames::leads_to(std::string_view name, const net::Address& address, Time now) const {
    const auto found = names_.find(std::string(name));
    if (found == names_.end()) return false;
    return std::ranges::any_of(found->second, [&](const Entry& entry) {
        return entry.address == address && entry.until > now;
    });
}

}  // namespace opensandbox::egress
