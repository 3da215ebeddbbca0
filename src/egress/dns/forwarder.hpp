#pragma once

#include "egress/dns/answer.hpp"
#include "egress/dns/cache.hpp"
#include "egress/dns/upstream_health.hpp"

#include <functional>
#include <memory>
#include <unordered_map>

namespace opensandbox::egress::dns {

/// Asks the upstreams one after another (network 1.4): NOERROR, also an empty one, and NXDOMAIN
/// end the search; another code, silence or nonsense leads to the next.
class Forwarder : public std::enable_shared_from_this<Forwarder> {
  public:
    Forwarder(asio::any_io_executor executor, UpstreamSettings settings, CacheSettings bounds,
              bool strip_ech);

    void start();
    void stop();
    /// The cleaned answer; the last upstream's error when all failed.
    static Awaitable<Result<std::shared_ptr<const Answer>>> ask(std::shared_ptr<Forwarder> self,
                                                                UpstreamQuestion question);

    /// Takes an answer that has come, before those who wait for it have it.
    using Keep = std::function<void(const std::shared_ptr<CacheEntry>&)>;
    /// As ask(), but once for all who ask the same at the same time: `shared` tells whether
    /// somebody else began. Asking goes on when nobody waits any more. Null when no upstream
    /// answered, or too many different questions wait.
    static Awaitable<std::shared_ptr<CacheEntry>> ask_once(std::shared_ptr<Forwarder> self,
                                                           CacheKey key, UpstreamQuestion question,
                                                           Keep keep, bool& shared);

    [[nodiscard]] const UpstreamHealth& health() const { return *health_; }

  private:
    struct Flight;
    static Awaitable<void> fly(std::shared_ptr<Forwarder> self, std::shared_ptr<Flight> flight,
                               UpstreamQuestion question, Keep keep);

    asio::any_io_executor executor_;
    UpstreamSettings settings_;
    AnswerRules rules_;
    std::vector<std::shared_ptr<Upstream>> upstreams_;
    std::shared_ptr<UpstreamHealth> health_;
    std::unordered_map<CacheKey, std::shared_ptr<Flight>, CacheKeyHash> flights_;
    bool stopped_ = false;
};

}  // namespace opensandbox::egress::dns
