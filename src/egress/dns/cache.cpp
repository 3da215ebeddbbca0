#include "egress/dns/cache.hpp"

#include <algorithm>

namespace opensandbox::egress::dns {

namespace {

constexpr std::size_t kMaxLearned = 4096;
/// Nodes of the list and the table, control blocks, a few clients.
constexpr std::size_t kOverhead = 256;

std::size_t size_of(const CacheKey& key, const Answer& answer) {
    std::size_t size = kOverhead + sizeof(CacheEntry) + sizeof(Answer) + key.name.size() +
                       answer.wire.size() + answer.ttl_offsets.size() * sizeof(std::uint16_t) +
                       answer.addresses.size() * sizeof(AnswerAddress);
    for (const std::string& name : answer.chain)
        size += sizeof(std::string) + name.size();
    return size;
}

}  // namespace

CacheEntry::CacheEntry(const CacheKey& key, std::shared_ptr<const Answer> answer, Time now)
    : name_(key.name),
      key_(key),
      answer_(std::move(answer)),
      stored_(now),
      size_(size_of(key, *answer_)) {
    key_.name = name_;
}

std::uint32_t CacheEntry::age(Time now) const {
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(now - stored_).count();
    return passed > 0 ? static_cast<std::uint32_t>(passed) : 0;
}

std::size_t CacheEntry::position(ClientId client) const {
    const auto found = std::lower_bound(
        learned_.begin(), learned_.end(), client,
        [](const Learned& learned, ClientId wanted) { return learned.client < wanted; });
    return static_cast<std::size_t>(found - learned_.begin());
}

bool CacheEntry::learned(ClientId client, std::uint64_t generation, Time until) const {
    const std::size_t at = position(client);
    return holds(at, client) && learned_[at].generation == generation &&
           learned_[at].until >= until;
}

void CacheEntry::set_learned(ClientId client, std::uint64_t generation, Time until) {
    const std::size_t at = position(client);
    const Learned learned{client, generation, until};
    if (holds(at, client)) {
        learned_[at] = learned;
    } else if (learned_.size() < kMaxLearned) {
        learned_.insert(learned_.begin() + static_cast<std::ptrdiff_t>(at), learned);
    }
}

void CacheEntry::forget(ClientId client) {
    const std::size_t at = position(client);
    if (holds(at, client)) learned_.erase(learned_.begin() + static_cast<std::ptrdiff_t>(at));
}

std::shared_ptr<CacheEntry> Cache::find(const CacheKey& key, Time now) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    const Order::iterator position = found->second;
    if ((*position)->expired(now)) {
        erase(position);
        return nullptr;
    }
    order_.splice(order_.begin(), order_, position);
    return *position;
}

void Cache::put(const std::shared_ptr<CacheEntry>& entry) {
    if (entry->answer()->ttl == 0 || entry->size() > settings_.bytes || settings_.entries == 0) {
        return;
    }
    const auto found = by_key_.find(entry->key());
    if (found != by_key_.end()) erase(found->second);
    make_room(entry->size());
    order_.push_front(entry);
    by_key_.emplace(entry->key(), order_.begin());
    bytes_ += entry->size();
}

void Cache::make_room(std::size_t bytes) {
    while (!order_.empty() &&
           (bytes_ + bytes > settings_.bytes || by_key_.size() >= settings_.entries)) {
        erase(std::prev(order_.end()));
    }
}

void Cache::set_learned(CacheEntry& entry, ClientId client, std::uint64_t generation, Time until) {
    const std::size_t before = entry.size();
    entry.set_learned(client, generation, until);
    const auto found = by_key_.find(entry.key());
    if (found == by_key_.end() || found->second->get() != &entry) return;
    bytes_ += entry.size() - before;
    while (bytes_ > settings_.bytes && order_.size() > 1)
        erase(std::prev(order_.end()));
}

void Cache::forget(ClientId client) {
    for (const auto& entry : order_) {
        bytes_ -= entry->size();
        entry->forget(client);
        bytes_ += entry->size();
    }
}

void Cache::clear() {
    by_key_.clear();
    order_.clear();
    bytes_ = 0;
}

void Cache::erase(Order::iterator position) {
    bytes_ -= (*position)->size();
    by_key_.erase((*position)->key());
    order_.erase(position);
}

}  // namespace opensandbox::egress::dns
