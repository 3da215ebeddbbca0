#pragma once

#include "egress/dns/gate.hpp"
#include "egress/dns/name_spread.hpp"
#include "egress/dns/rate_limit.hpp"
#include "egress/dns/settings.hpp"

#include <memory>
#include <unordered_map>

namespace opensandbox::egress::dns {

/// What one client has used of its share.
struct ClientShare {
    RateLimit queries;
    RateLimit forwarded;
    NameSpread spread;
    std::size_t in_flight = 0;
    std::size_t connections = 0;
};

/// Counts one use of a number that has a limit, while it exists.
class Turn {
  public:
    Turn() = default;
    /// Not taken when either count is at its limit.
    Turn(std::shared_ptr<ClientShare> share, std::size_t ClientShare::* own, std::size_t most,
         std::shared_ptr<std::size_t> all, std::size_t most_of_all);
    ~Turn();
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&& other) noexcept;
    [[nodiscard]] bool taken() const { return share_ != nullptr; }

  private:
    void release();

    std::shared_ptr<ClientShare> share_;
    std::size_t ClientShare::* own_ = nullptr;
    std::shared_ptr<std::size_t> all_;
};

/// The shares of all clients. Those that have been quiet for long are forgotten.
class Clients {
  public:
    using Time = std::chrono::steady_clock::time_point;

    explicit Clients(ClientLimits limits) : limits_(limits) {}

    std::shared_ptr<ClientShare> share(ClientId client, Time now);
    void forget(ClientId client) { shares_.erase(client); }
    Turn query_turn(const std::shared_ptr<ClientShare>& share);
    Turn connection_turn(const std::shared_ptr<ClientShare>& share);
    [[nodiscard]] const ClientLimits& limits() const { return limits_; }
    [[nodiscard]] std::size_t size() const { return shares_.size(); }

  private:
    void sweep(Time now);

    ClientLimits limits_;
    std::unordered_map<ClientId, std::shared_ptr<ClientShare>> shares_;
    std::shared_ptr<std::size_t> in_flight_ = std::make_shared<std::size_t>(0);
    std::shared_ptr<std::size_t> connections_ = std::make_shared<std::size_t>(0);
    Time swept_;
};

}  // namespace opensandbox::egress::dns
