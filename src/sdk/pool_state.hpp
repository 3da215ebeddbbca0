#pragma once

#include "net/task.hpp"
#include "opensandbox/pool.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// One start of a pool, up to its shutdown.
struct PoolRun {
    explicit PoolRun(const asio::any_io_executor& executor) : wake(executor), settled(executor) {}

    bool running = true;      ///< takes new work
    bool commits = true;      ///< sandboxes in the making may still become idle ones
    bool loop_ended = false;  ///< the background loop
    bool primary = false;
    bool limited = false;  ///< the last look at the pool left something to be created later
    std::size_t warming = 0;
    std::size_t in_flight = 0;  ///< warm-ups and acquires
    double tokens = 0;          ///< creates allowed now
    std::chrono::steady_clock::time_point refilled_at = std::chrono::steady_clock::now();
    net::Event wake;     ///< for the background loop
    net::Event settled;  ///< for a shutdown: something ended
};

struct SandboxPool::State : std::enable_shared_from_this<SandboxPool::State> {
    using Clock = std::chrono::steady_clock;
    using Self = std::shared_ptr<State>;
    using Run = std::shared_ptr<PoolRun>;

    State(Connection server, PoolOptions wanted)
        : connection(std::move(server)),
          options(std::move(wanted)),
          store(options.store),
          max_idle(options.max_idle) {}

    // pool_acquire.cpp
    static Awaitable<Result<Sandbox>> acquire(Self self, AcquireOptions how);
    Awaitable<Result<Sandbox>> take_or_create(Self self, Run run, AcquireOptions how);
    Awaitable<Result<Sandbox>> connect(std::string id);
    Awaitable<Result<Sandbox>> finish(Self self, Run run, AcquireOptions how, Sandbox sandbox);
    /// Null, or why the pool may not be used; `lenient`: a store that is silent is no reason.
    Awaitable<Status> expect_active(bool lenient);

    // pool_reconcile.cpp: the background.
    static Awaitable<void> work(Self self, Run run);
    Awaitable<Status> reconcile(Self self, Run run);
    Awaitable<Status> shrink(Self self, std::size_t excess);
    static Awaitable<void> warm(Self self, Run run);
    Awaitable<Status> warm_one(Run run);
    std::size_t allowed_creates(PoolRun& run, std::size_t wanted);
    [[nodiscard]] std::chrono::nanoseconds next_look(const PoolRun& run) const;
    void record(const Status& outcome);
    [[nodiscard]] bool backs_off() const { return Clock::now() < backoff_until; }
    [[nodiscard]] bool degraded() const { return failures >= options.degraded_threshold; }

    // pool.cpp
    static Awaitable<Status> start(Self self);
    static Awaitable<Status> shutdown(Self self, bool graceful);
    static Awaitable<Result<PoolSnapshot>> snapshot(Self self);
    static Awaitable<Result<std::size_t>> release_idle(Self self);
    static Awaitable<Result<PoolDestroyResult>> destroy(
        Self self, std::optional<std::chrono::milliseconds> keep);
    /// Takes all idle sandboxes out and deletes them, some at a time.
    Awaitable<Result<PoolDestroyResult>> drain();
    void stop_now();

    // pool_discard.cpp: deletes sandboxes; that one cannot be deleted is no failure, it expires.
    static void discard(const Self& self, std::vector<std::string> ids);
    /// Returns how many were deleted.
    Awaitable<std::size_t> kill_all(std::vector<std::string> ids);

    Connection connection;
    PoolOptions options;
    std::shared_ptr<PoolStore> store;
    std::size_t max_idle;  ///< where the store does not know
    std::chrono::milliseconds min_remaining{0};

    Run run;  ///< null: not running
    std::size_t failures = 0;
    std::optional<std::string> last_error;
    std::chrono::milliseconds backoff{0};
    Clock::time_point backoff_until{};
};

}  // namespace opensandbox::sdk
