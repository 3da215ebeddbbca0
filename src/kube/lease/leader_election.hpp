#pragma once

#include "kube/api/client.hpp"
#include "kube/lease/lease.hpp"
#include "net/task.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace opensandbox::kube {

struct ElectionSettings {
    ObjectKey lease;
    std::string identity;                     ///< ours, unlike that of any other candidate
    std::chrono::seconds duration{15};        ///< others wait so long after a last renewal
    std::chrono::seconds renew_deadline{10};  ///< we stop leading after so long without one
    std::chrono::milliseconds retry{2'000};
};

/// Elects one of several processes by a Lease, as those of Kubernetes do. The clocks of candidates
/// may differ: how old a renewal is counts from when it was seen here. Borrows the client.
class LeaderElection {
  public:
    /// Called with true when we begin to lead, with false when we do not any more.
    using Listener = std::function<void(bool leads)>;

    LeaderElection(Client& client, ElectionSettings settings, Listener listener);
    LeaderElection(const LeaderElection&) = delete;
    LeaderElection& operator=(const LeaderElection&) = delete;

    /// Runs until stop(), then gives the lease back if it is ours. Once.
    Awaitable<void> run();
    void stop();

    [[nodiscard]] bool leads() const { return leads_; }
    /// As last seen; empty when nobody leads or nothing is known.
    [[nodiscard]] const std::string& leader() const { return seen_.holder; }

  private:
    using Clock = std::chrono::steady_clock;
    Awaitable<Status> try_once();
    Awaitable<Status> make();
    Awaitable<Status> write(Lease lease);
    Awaitable<void> give_back();
    void observe(Lease lease);
    void renewed(Clock::time_point sent);
    void lost(std::string_view why);

    Client& client_;
    ElectionSettings settings_;
    Listener listener_;
    net::Event wake_;
    BackOff pauses_;
    Lease seen_;
    Clock::time_point seen_at_{};
    std::optional<net::Deadline> deadline_;  ///< of our own lead
    bool leads_ = false;
    bool stopped_ = false;
};

}  // namespace opensandbox::kube
