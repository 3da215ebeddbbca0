#pragma once

#include "egress/dns/address_sink.hpp"
#include "egress/dns/cache.hpp"
#include "egress/dns/clients.hpp"
#include "egress/dns/denial.hpp"
#include "egress/dns/forwarder.hpp"
#include "egress/dns/reply.hpp"
#include "egress/dns/statistics.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::egress::dns {

/// What the resolver needs of others. The gate is required; without a sink nothing is learned,
/// without an observer denials are only counted.
struct Neighbours {
    std::shared_ptr<Gate> gate;
    std::shared_ptr<AddressSink> sink;
    DenialObserver observer;
    /// Told of each allowed name that no upstream resolved; may be empty. As the observer.
    std::function<void(const std::string& name)> unresolved;
};

/// A query that cannot be answered at once.
struct PendingQuery {
    ClientId client = 0;
    net::dns::Query query;
    std::string message;
    bool tcp = false;
    std::shared_ptr<CacheEntry> entry;  ///< the answer, when only learning is left to do
    Turn turn;
};

/// From a query's bytes to a reply's: limits, policy, cache, upstreams, rebinding protection,
/// learning. One event loop; make it with std::make_shared.
class Resolver : public std::enable_shared_from_this<Resolver> {
  public:
    Resolver(asio::any_io_executor executor, ProxySettings settings, Neighbours neighbours);

    void start();
    void stop();

    /// Answers what needs no waiting: `reply` then holds the bytes to send, none when the query is
    /// dropped. Else the query comes back for answer().
    std::optional<PendingQuery> answer_now(ClientId client, std::string_view message, bool tcp,
                                           std::string& reply);
    /// The bytes to send.
    static Awaitable<std::string> answer(std::shared_ptr<Resolver> self, PendingQuery pending);

    /// For a client whose number means nobody any more.
    void forget(ClientId client);
    void clear_cache() { cache_.clear(); }
    /// A share of the client's connections, held by the connection.
    Turn connection_turn(ClientId client);

    [[nodiscard]] const Statistics& statistics() const { return statistics_; }
    [[nodiscard]] const Cache& cache() const { return cache_; }
    [[nodiscard]] const UpstreamHealth& health() const { return forwarder_->health(); }
    [[nodiscard]] const ProxySettings& settings() const { return settings_; }

  private:
    using Time = std::chrono::steady_clock::time_point;
    struct Served;
    /// A query that was read, before it is known whether it has to wait.
    struct Job;

    std::optional<Refusal> judge(Job& job);
    std::optional<Refusal> admit(Job& job, ClientShare& share, Time now);
    std::optional<Refusal> admit_forwarding(const Job& job, ClientShare& share, Time now);
    Served serve(const Job& job, const std::shared_ptr<CacheEntry>& entry, Time now);
    bool answer_kept(const Job& job, const std::shared_ptr<CacheEntry>& entry, Time now,
                     std::string& reply);
    void write(const Job& job, const Answer& answer, std::uint32_t age, std::string& reply);
    void refuse(const Job& job, const Refusal& refusal, std::string& reply);
    void fail(const Job& job, ExtendedError info, std::string_view text, std::string& reply);
    Refusal denied(std::string reason) const;

    static Awaitable<std::shared_ptr<CacheEntry>> fetch(std::shared_ptr<Resolver> self,
                                                        PendingQuery& pending);
    static Awaitable<bool> learn(std::shared_ptr<Resolver> self, PendingQuery& pending,
                                 Served served);

    ProxySettings settings_;
    Neighbours neighbours_;
    Clients clients_;
    Cache cache_;
    std::shared_ptr<Forwarder> forwarder_;
    Statistics statistics_;
    bool stopped_ = false;
};

}  // namespace opensandbox::egress::dns
