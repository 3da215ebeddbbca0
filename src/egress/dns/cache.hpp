#pragma once

#include "egress/dns/answer.hpp"
#include "egress/dns/gate.hpp"

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opensandbox::egress::dns {

/// What makes two queries one.
struct CacheKey {
    std::string_view name;  ///< as Gate gets it; whoever keeps the key keeps the name
    std::uint16_t type = 0;
    bool dnssec = false;
    bool checking_disabled = false;
    friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

struct CacheKeyHash {
    std::size_t operator()(const CacheKey& key) const {
        const std::size_t flags =
            key.type * 4U + (key.dnssec ? 2U : 0U) + (key.checking_disabled ? 1U : 0U);
        return std::hash<std::string_view>()(key.name) ^ flags * 0x9e3779b97f4a7c15U;
    }
};

/// An answer and who has learned its addresses.
class CacheEntry {
  public:
    using Time = std::chrono::steady_clock::time_point;

    CacheEntry(const CacheKey& key, std::shared_ptr<const Answer> answer, Time now);
    CacheEntry(const CacheEntry&) = delete;
    CacheEntry& operator=(const CacheEntry&) = delete;

    [[nodiscard]] const CacheKey& key() const { return key_; }
    [[nodiscard]] const std::shared_ptr<const Answer>& answer() const { return answer_; }
    [[nodiscard]] bool expired(Time now) const {
        return now - stored_ >= std::chrono::seconds(answer_->ttl);
    }
    /// Whole seconds since it came.
    [[nodiscard]] std::uint32_t age(Time now) const;
    /// About what it takes of memory.
    [[nodiscard]] std::size_t size() const { return size_ + learned_.size() * sizeof(Learned); }

    /// Whether the addresses are open for the client at least until then, under this generation.
    [[nodiscard]] bool learned(ClientId client, std::uint64_t generation, Time until) const;

  private:
    friend class Cache;
    struct Learned {
        ClientId client = 0;
        std::uint64_t generation = 0;
        Time until;
    };
    [[nodiscard]] std::size_t position(ClientId client) const;
    [[nodiscard]] bool holds(std::size_t position, ClientId client) const {
        return position < learned_.size() && learned_[position].client == client;
    }
    void set_learned(ClientId client, std::uint64_t generation, Time until);
    void forget(ClientId client);

    std::string name_;
    CacheKey key_;
    std::shared_ptr<const Answer> answer_;
    Time stored_;
    std::size_t size_;
    std::vector<Learned> learned_;  ///< sorted by client
};

/// Answers by question, shared between clients: whether one may see an answer is asked elsewhere,
/// for every query. The least recently used ones go first when it is full.
class Cache {
  public:
    using Time = CacheEntry::Time;

    explicit Cache(CacheSettings settings) : settings_(settings) {}

    /// Null when there is none or it has expired.
    std::shared_ptr<CacheEntry> find(const CacheKey& key, Time now);
    /// Keeps the entry unless its answer is not to be kept.
    void put(const std::shared_ptr<CacheEntry>& entry);
    /// Remembers what CacheEntry::learned() is asked for, of at most 4,096 clients; others learn
    /// each time.
    void set_learned(CacheEntry& entry, ClientId client, std::uint64_t generation, Time until);
    /// For a client whose number means nobody any more.
    void forget(ClientId client);
    void clear();
    [[nodiscard]] std::size_t entries() const { return by_key_.size(); }
    /// About what it takes of memory.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

  private:
    using Order = std::list<std::shared_ptr<CacheEntry>>;
    void erase(Order::iterator position);
    void make_room(std::size_t bytes);

    CacheSettings settings_;
    Order order_;  ///< the most recently used first
    std::unordered_map<CacheKey, Order::iterator, CacheKeyHash> by_key_;
    std::size_t bytes_ = 0;
};

}  // namespace opensandbox::egress::dns
