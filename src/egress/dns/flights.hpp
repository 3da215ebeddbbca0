#pragma once

#include "egress/dns/cache.hpp"
#include "net/stream.hpp"

#include <functional>
#include <memory>
#include <unordered_map>

namespace opensandbox::egress::dns {

/// Equal questions that wait at the same time are asked once.
class Flights {
  public:
    /// Ends with null when no upstream answered.
    using Work = std::function<Awaitable<std::shared_ptr<CacheEntry>>()>;

    explicit Flights(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    /// Waits for the running work of this key, or starts it. Work runs to its end even when nobody
    /// waits any more. `shared` tells whether somebody else had started it.
    static Awaitable<std::shared_ptr<CacheEntry>> join(std::shared_ptr<Flights> self, CacheKey key,
                                                       Work work, bool& shared);
    [[nodiscard]] bool running(const CacheKey& key) const { return by_key_.contains(key); }
    [[nodiscard]] std::size_t size() const { return by_key_.size(); }

  private:
    struct Flight;
    static Awaitable<void> fly(std::shared_ptr<Flights> self, std::shared_ptr<Flight> flight,
                               Work work);

    asio::any_io_executor executor_;
    std::unordered_map<CacheKey, std::shared_ptr<Flight>, CacheKeyHash> by_key_;
};

}  // namespace opensandbox::egress::dns
