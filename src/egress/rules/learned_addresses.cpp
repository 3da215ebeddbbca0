#include "egress/rules/learned_addresses.hpp"

#include <algorithm>
#include <set>

namespace opensandbox::egress::rules {

namespace {

std::chrono::milliseconds lifetime(LearnedAddresses::Time until, LearnedAddresses::Time now) {
    return std::chrono::ceil<std::chrono::milliseconds>(until - now);
}

}  // namespace

std::size_t LearnedKeyHash::operator()(const LearnedKey& key) const {
    const std::size_t ports = std::size_t{key.scope.protocol} << 32U |
                              std::size_t{key.scope.first} << 16U | key.scope.last;
    return std::hash<IpAddress>()(key.address) ^ ports * 0x9e3779b97f4a7c15ULL;
}

Result<std::vector<LearnedChange>> LearnedAddresses::needed(const std::string& sandbox,
                                                            const std::vector<LearnedKey>& keys,
                                                            Time until, Time now) const {
    std::vector<LearnedChange> changes;
    if (until <= now) return changes;
    const auto found = sandboxes_.find(sandbox);
    std::size_t fresh = 0;
    for (const auto& key : keys) {
        const Entry* entry = nullptr;
        if (found != sandboxes_.end()) {
            const auto at = found->second.find(key);
            if (at != found->second.end()) entry = &at->second;
        }
        if (entry == nullptr) ++fresh;
        if (entry == nullptr || entry->until < until)
            changes.emplace_back(key, lifetime(until, now));
    }
    const std::size_t held = found == sandboxes_.end() ? 0 : found->second.size();
    if (held + fresh > limits_.of_a_sandbox || size_ + fresh > limits_.in_all)
        return Error(ErrorCode::resource_exhausted, "too many learned addresses");
    return changes;
}

void LearnedAddresses::record(const std::string& sandbox, const std::string& name,
                              const std::vector<LearnedKey>& keys, Time until) {
    if (keys.empty()) return;
    auto& entries = sandboxes_[sandbox];
    for (const auto& key : keys) {
        const auto [at, fresh] = entries.try_emplace(key);
        auto& entry = at->second;
        if (fresh) {
            ++size_;
            entry.until = until;
            due_.push({until, sandbox, key});
        }
        entry.until = std::max(entry.until, until);
        const auto grant =
            std::ranges::find_if(entry.grants, [&](const Grant& g) { return g.name == name; });
        if (grant == entry.grants.end())
            entry.grants.push_back({name, until});
        else
            grant->until = std::max(grant->until, until);
    }
}

LearnedAddresses::Loss LearnedAddresses::revoke(const std::string& sandbox,
                                                const StillAllowed& still_allowed, Time now) {
    Loss loss;
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end()) return loss;
    auto& entries = found->second;
    for (auto at = entries.begin(); at != entries.end();) {
        const auto& key = at->first;
        auto& entry = at->second;
        std::erase_if(entry.grants, [&](const Grant& grant) {
            return grant.until <= now || !still_allowed(grant.name, key.scope);
        });
        if (entry.grants.empty()) {
            loss.removed.push_back(key);
            at = entries.erase(at);
            --size_;
            continue;
        }
        const auto longest = std::ranges::max_element(
            entry.grants, {}, [](const Grant& grant) { return grant.until; });
        if (longest->until < entry.until) {
            entry.until = longest->until;
            due_.push({entry.until, sandbox, key});
            loss.shortened.emplace_back(key, lifetime(entry.until, now));
        }
        ++at;
    }
    if (entries.empty()) sandboxes_.erase(found);
    return loss;
}

std::vector<LearnedKey> LearnedAddresses::forget(const std::string& sandbox) {
    std::vector<LearnedKey> keys;
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end()) return keys;
    for (const auto& [key, entry] : found->second)
        keys.push_back(key);
    size_ -= keys.size();
    sandboxes_.erase(found);
    return keys;
}

void LearnedAddresses::expire(Time now) {
    while (!due_.empty() && due_.top().at <= now) {
        const Due due = due_.top();
        due_.pop();
        const auto found = sandboxes_.find(due.sandbox);
        if (found == sandboxes_.end()) continue;
        const auto at = found->second.find(due.key);
        if (at == found->second.end()) continue;
        if (at->second.until > now) {
            due_.push({at->second.until, due.sandbox, due.key});
            continue;
        }
        found->second.erase(at);
        --size_;
        if (found->second.empty()) sandboxes_.erase(found);
    }
}

bool LearnedAddresses::contains(const std::string& sandbox, const LearnedKey& key, Time now) const {
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end()) return false;
    const auto at = found->second.find(key);
    return at != found->second.end() && at->second.until > now;
}

std::vector<LearnedKey> LearnedAddresses::of(const std::string& sandbox, Time now) const {
    std::vector<LearnedKey> keys;
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end()) return keys;
    for (const auto& [key, entry] : found->second)
        if (entry.until > now) keys.push_back(key);
    return keys;
}

std::vector<Scope> LearnedAddresses::scopes(const std::string& sandbox) const {
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end()) return {};
    std::set<Scope> scopes;
    Scope last;
    for (const auto& [key, entry] : found->second) {
        if (!scopes.empty() && key.scope == last) continue;
        scopes.insert(last = key.scope);
    }
    return {scopes.begin(), scopes.end()};
}

std::vector<std::string> LearnedAddresses::names(const std::string& sandbox,
                                                 const IpAddress& address) const {
    std::set<std::string> names;
    const auto found = sandboxes_.find(sandbox);
    if (found == sandboxes_.end()) return {};
    for (const auto& [key, entry] : found->second) {
        if (key.address != address) continue;
        for (const auto& grant : entry.grants)
            if (!grant.name.empty()) names.insert(grant.name);
    }
    return {names.begin(), names.end()};
}

}  // namespace opensandbox::egress::rules
