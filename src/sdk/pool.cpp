#include "opensandbox/pool.hpp"

#include "base/identifier.hpp"
#include "sdk/pool_error.hpp"
#include "sdk/pool_state.hpp"

#include <algorithm>

namespace opensandbox::sdk {

using State = SandboxPool::State;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMostIdle = 100'000;
constexpr milliseconds kMostRemaining{60'000};

std::optional<Error> check(bool holds, std::string_view rule) {
    if (holds) return std::nullopt;
    return Error(ErrorCode::invalid_argument, "pool: " + std::string(rule));
}

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::optional<Error> refuse(const PoolOptions& options) {
    const milliseconds zero{0};
    const std::optional<Error> checks[] = {
        check(!is_blank(options.name), "name must not be blank"),
        check(options.store != nullptr, "store must not be null"),
        check(options.max_idle <= kMostIdle, "max_idle must be at most 100000"),
        check(options.warmup_concurrency > 0, "warmup_concurrency must be at least 1"),
        check(options.warmup_creates_per_second > 0 && options.warmup_creates_per_second <= 1000,
              "warmup_creates_per_second must be from 1 to 1000"),
        check(options.warmup_ready_timeout > zero, "warmup_ready_timeout must be positive"),
        check(options.acquire_ready_timeout > zero, "acquire_ready_timeout must be positive"),
        check(options.max_acquire_retries > 0, "max_acquire_retries must be at least 1"),
        check(options.idle_ttl > zero, "idle_ttl must be positive"),
        check(!options.min_remaining ||
                  (*options.min_remaining >= zero && *options.min_remaining < options.idle_ttl),
              "min_remaining must be 0 or more and less than idle_ttl"),
        check(options.primary_lock_ttl >= milliseconds(3),
              "primary_lock_ttl must be at least 3 ms"),
        check(options.reconcile_interval > zero, "reconcile_interval must be positive"),
        check(options.degraded_threshold > 0, "degraded_threshold must be at least 1"),
        check(options.first_backoff > zero, "first_backoff must be positive"),
        check(options.longest_backoff >= options.first_backoff,
              "longest_backoff must be at least first_backoff"),
        check(options.drain_timeout >= zero, "drain_timeout must not be negative")};
    for (const auto& wrong : checks) {
        if (wrong) return wrong;
    }
    return std::nullopt;
}

/// What the copies of a SandboxPool share: with the last of them the background ends, though it
/// holds the state, too.
struct Handle {
    explicit Handle(std::shared_ptr<State> shared) : state(std::move(shared)) {}
    ~Handle() { state->stop_now(); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    std::shared_ptr<State> state;
};

}  // namespace

std::string_view to_string(PoolState state) {
    switch (state) {
        case PoolState::healthy: return "HEALTHY";
        case PoolState::degraded: return "DEGRADED";
        case PoolState::draining: return "DRAINING";
        case PoolState::stopped: return "STOPPED";
    }
    return "STOPPED";
}

Result<SandboxPool> SandboxPool::open(Connection connection, PoolOptions options) {
    if (auto wrong = refuse(options)) return *wrong;
    if (options.owner.empty()) options.owner = "pool-owner-" + new_uuid();
    auto state = std::make_shared<State>(std::move(connection), std::move(options));
    const milliseconds half = state->options.idle_ttl / 2;
    state->min_remaining = state->options.min_remaining.value_or(std::min(kMostRemaining, half));
    State* shared = state.get();
    return SandboxPool(std::shared_ptr<State>(std::make_shared<Handle>(std::move(state)), shared));
}

Awaitable<Status> SandboxPool::start() {
    return State::start(state_);
}
Awaitable<Result<Sandbox>> SandboxPool::acquire(AcquireOptions options) {
    return State::acquire(state_, options);
}
Awaitable<Result<PoolSnapshot>> SandboxPool::snapshot() const {
    return State::snapshot(state_);
}
Awaitable<Result<std::size_t>> SandboxPool::release_idle() {
    return State::release_idle(state_);
}
Awaitable<Status> SandboxPool::shutdown(bool graceful) {
    return State::shutdown(state_, graceful);
}
Awaitable<Result<PoolDestroyResult>> SandboxPool::destroy(std::optional<milliseconds> keep) {
    return State::destroy(state_, keep);
}

Awaitable<Status> SandboxPool::resize(std::size_t max_idle) {
    std::shared_ptr<State> state = state_;
    if (max_idle > kMostIdle) {
        co_return Error(ErrorCode::invalid_argument, "pool: max_idle must be at most 100000");
    }
    Status set = co_await state->store->set_max_idle(state->options.name, max_idle);
    if (!set) co_return set;
    state->max_idle = max_idle;
    if (state->run) state->run->wake.notify();
    co_return Status();
}

Awaitable<Result<std::vector<IdleEntry>>> SandboxPool::idle_entries() const {
    std::shared_ptr<State> state = state_;
    co_return co_await state->store->idle_entries(state->options.name);
}

Awaitable<Status> State::start(Self self) {
    if (self->run && self->run->running) co_return Status();
    const PoolOptions& options = self->options;
    Status ready = co_await self->expect_active(false);
    if (ready) ready = co_await self->store->set_idle_ttl(options.name, options.idle_ttl);
    if (ready) ready = co_await self->store->set_max_idle(options.name, self->max_idle);
    if (!ready || (self->run && self->run->running)) co_return ready;
    auto executor = self->connection.executor();
    auto run = std::make_shared<PoolRun>(executor);
    run->tokens = static_cast<double>(options.warmup_creates_per_second);
    self->run = run;
    self->failures = 0;
    self->backoff = {};
    self->backoff_until = {};
    self->last_error.reset();
    // The background must not keep alive what ends it: it gets the state without the handle.
    net::spawn(executor, work(self->shared_from_this(), run), "pool");
    co_return Status();
}

void State::stop_now() {
    if (!run) return;
    run->running = false;
    run->commits = false;
    run->wake.notify();
}

Awaitable<Status> State::shutdown(Self self, bool graceful) {
    Run run = self->run;
    if (!run) co_return Status();
    const bool draining = !run->running && run->commits;
    run->running = false;
    run->wake.notify();
    if (graceful && draining) co_return Status();  // somebody else does it
    const auto end = Clock::now() + self->options.drain_timeout;
    while (graceful && (run->in_flight > 0 || !run->loop_ended) && Clock::now() < end) {
        static_cast<void>(co_await run->settled.wait_for(end - Clock::now()));
    }
    run->commits = false;
    run->primary = false;
    if (self->run == run) self->run.reset();
    // A store that does not answer lets go by itself.
    Status released =
        co_await self->store->release_primary_lock(self->options.name, self->options.owner);
    static_cast<void>(released);
    co_return Status();
}

Awaitable<Result<PoolSnapshot>> State::snapshot(Self self) {
    PoolSnapshot shot;
    if (const Run& run = self->run) {
        shot.state = self->degraded() ? PoolState::degraded : PoolState::healthy;
        if (!run->running) shot.state = run->commits ? PoolState::draining : PoolState::stopped;
        shot.warming = run->warming;
        shot.primary = run->primary;
        shot.in_flight_operations = run->in_flight;
    }
    shot.failure_count = self->failures;
    shot.backoff_active = self->backs_off();
    shot.last_error = self->last_error;
    auto idle = co_await self->store->count_idle(self->options.name);
    if (!idle) co_return idle.error();
    auto most = co_await self->store->max_idle(self->options.name);
    if (!most) co_return most.error();
    shot.idle_count = *idle;
    shot.max_idle = most->value_or(self->max_idle);
    co_return shot;
}

Awaitable<Result<PoolDestroyResult>> State::drain() {
    PoolDestroyResult result;
    std::vector<std::string> ids;
    while (true) {
        auto taken = co_await store->take_idle(options.name, milliseconds(0));
        if (!taken) {
            // What was taken is nobody's any more.
            result.killed = co_await kill_all(std::move(ids));
            co_return taken.error();
        }
        if (!taken->sandbox_id) break;
        ids.push_back(std::move(*taken->sandbox_id));
    }
    result.drained = ids.size();
    result.killed = co_await kill_all(std::move(ids));
    co_return result;
}

Awaitable<Result<std::size_t>> State::release_idle(Self self) {
    auto drained = co_await self->drain();
    if (!drained) co_return drained.error();
    co_return drained->drained;
}

Awaitable<Result<PoolDestroyResult>> State::destroy(Self self, std::optional<milliseconds> keep) {
    const PoolOptions& options = self->options;
    if (keep && keep->count() < 1) {
        co_return Error(ErrorCode::invalid_argument, "pool: keep must be at least 1 ms");
    }
    Status begun = co_await self->store->begin_destroy(options.name, options.owner);
    if (!begun && begun.error().wire_code() == kPoolDestroyed) co_return PoolDestroyResult();
    if (!begun) co_return begun.error();
    Status stopped = co_await shutdown(self, true);
    static_cast<void>(stopped);
    auto drained = co_await self->drain();
    Status done;
    if (!drained) done = drained.error();
    if (done) done = co_await self->store->clear(options.name);
    if (done) done = co_await self->store->mark_destroyed(options.name, options.owner, keep);
    if (!done) {
        co_return pool_error(ErrorCode::unavailable, kPoolDestroyIncomplete,
                             "the pool '" + options.name + "' is not destroyed in full, call " +
                                 "destroy() again: " + done.error().message());
    }
    drained->cleared = true;
    co_return drained;
}

}  // namespace opensandbox::sdk
