#include "server/request_rooms.hpp"

#include "base/descriptor_limit.hpp"
#include "server/config/config.hpp"

#include <algorithm>

namespace opensandbox::server {
namespace {

/// A small limit of descriptors still leaves these.
constexpr std::size_t kLeast = 8;

void lower(std::size_t& limit, std::size_t most) {
    most = std::max(most, kLeast);
    if (limit == 0 || limit > most) limit = most;
}

bool is_full(std::size_t count, std::size_t limit) {
    return limit != 0 && count >= limit;
}

}  // namespace

void RoomLimits::fit(std::size_t descriptors) {
    lower(unauthorized, descriptors / 8);
    lower(proxied, descriptors / 4);
}

RoomLimits room_limits(const Config& config) {
    RoomLimits limits;
    limits.control = static_cast<std::size_t>(config.limit_concurrency);
    limits.proxied = static_cast<std::size_t>(config.limit_proxied);
    limits.unauthorized = static_cast<std::size_t>(config.limit_without_key);
    limits.per_sandbox = static_cast<std::size_t>(config.limit_per_sandbox);
    limits.fit(descriptor_limit());
    return limits;
}

std::size_t RequestRooms::limit(Traffic traffic) const {
    switch (traffic) {
        case Traffic::control: return limits_.control;
        case Traffic::proxied: return limits_.proxied;
        case Traffic::unauthorized: return limits_.unauthorized;
    }
    return 0;
}

std::optional<RequestRooms::Place> RequestRooms::enter(Traffic traffic, std::string_view sandbox) {
    auto kind = static_cast<std::size_t>(traffic);
    if (is_full(counts_[kind], limit(traffic))) return std::nullopt;
    if (!sandbox.empty()) {
        auto found = sandboxes_.find(sandbox);
        if (found == sandboxes_.end()) {
            found = sandboxes_.emplace(std::string(sandbox), Counts{}).first;
        }
        if (is_full(found->second[kind], limits_.per_sandbox)) return std::nullopt;
        ++found->second[kind];
    }
    ++counts_[kind];
    return Place(*this, traffic, sandbox);
}

void RequestRooms::leave(Traffic traffic, const std::string& sandbox) {
    auto kind = static_cast<std::size_t>(traffic);
    --counts_[kind];
    if (sandbox.empty()) return;
    auto found = sandboxes_.find(sandbox);
    --found->second[kind];
    bool empty = std::ranges::all_of(found->second, [](std::size_t count) { return count == 0; });
    if (empty) sandboxes_.erase(found);
}

}  // namespace opensandbox::server
