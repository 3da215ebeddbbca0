#include "base/scope_exit.hpp"
#include "sdk/pool_error.hpp"
#include "sdk/pool_state.hpp"

#include <algorithm>

namespace opensandbox::sdk {

using State = SandboxPool::State;

namespace {

constexpr int kRenewalsPerLock = 3;

/// A hook of the program's may throw; here that is a failure like any other.
Awaitable<Status> prepare_guarded(std::function<Awaitable<Status>(Sandbox)> prepare,
                                  Sandbox sandbox) {
    if (!prepare) co_return Status();
    try {
        co_return co_await prepare(std::move(sandbox));
    } catch (const std::exception& thrown) {
        co_return Error(ErrorCode::internal, thrown.what());
    }
}

}  // namespace

Awaitable<void> State::work(Self self, Run run) {
    while (run->running) {
        Status looked = co_await self->reconcile(self, run);
        if (!looked) {
            run->primary = false;
            self->last_error = looked.error().message();
        }
        if (run->running) co_await run->wake.wait_for(self->next_look(*run));
    }
    run->loop_ended = true;
    run->settled.notify();
}

std::chrono::nanoseconds State::next_look(const PoolRun& run) const {
    auto pause = std::min(options.reconcile_interval, options.primary_lock_ttl / kRenewalsPerLock);
    if (run.limited) {
        const auto one = std::chrono::milliseconds(1000 / options.warmup_creates_per_second);
        pause = std::min(pause, one);
    }
    return std::max(pause, std::chrono::milliseconds(1));
}

Awaitable<Status> State::reconcile(Self self, Run run) {
    run->limited = false;
    auto destroy = co_await store->destroy_state(options.name);
    if (!destroy) co_return destroy.error();
    if (*destroy != PoolDestroyState::active) {
        stop_now();
        co_return destroyed_error(options.name, *destroy);
    }
    auto locked =
        co_await store->acquire_primary_lock(options.name, options.owner, options.primary_lock_ttl);
    if (!locked) co_return locked.error();
    run->primary = *locked;
    if (!*locked) co_return Status();

    auto discarded = co_await store->reap_expired(options.name, min_remaining);
    if (!discarded) co_return discarded.error();
    discard(self, std::move(*discarded));
    auto wanted = co_await store->max_idle(options.name);
    if (!wanted) co_return wanted.error();
    auto idle = co_await store->count_idle(options.name);
    if (!idle) co_return idle.error();
    const std::size_t most = wanted->value_or(max_idle);
    if (*idle > most) co_return co_await shrink(self, *idle - most);

    const std::size_t missing = most - std::min(most, *idle + run->warming);
    const std::size_t creates = allowed_creates(*run, missing);
    run->limited = creates < missing && !backs_off();
    for (std::size_t i = 0; i < creates && run->running; ++i) {
        ++run->warming;
        ++run->in_flight;
        net::spawn(connection.executor(), warm(self, run), "pool: warm-up");
    }
    co_return Status();
}

Awaitable<Status> State::shrink(Self self, std::size_t excess) {
    const std::size_t most = std::min(excess, options.warmup_concurrency);
    for (std::size_t i = 0; i < most; ++i) {
        auto still = co_await store->renew_primary_lock(options.name, options.owner,
                                                        options.primary_lock_ttl);
        if (!still) co_return still.error();
        if (!*still) co_return Status();
        auto taken = co_await store->take_idle(options.name, std::chrono::milliseconds(0));
        if (!taken) co_return taken.error();
        if (!taken->sandbox_id) co_return Status();
        std::vector<std::string> one{std::move(*taken->sandbox_id)};
        discard(self, std::move(one));
    }
    co_return Status();
}

std::size_t State::allowed_creates(PoolRun& run, std::size_t wanted) {
    if (backs_off()) return 0;
    const auto now = Clock::now();
    const std::chrono::duration<double> passed = now - run.refilled_at;
    run.refilled_at = now;
    const auto rate = static_cast<double>(options.warmup_creates_per_second);
    run.tokens = std::min(rate, run.tokens + rate * passed.count());
    const std::size_t room = options.warmup_concurrency - run.warming;
    std::size_t creates = std::min({wanted, room, static_cast<std::size_t>(run.tokens)});
    // Once degraded, one shows whether it works again.
    if (degraded()) creates = std::min<std::size_t>(creates, run.warming == 0 ? 1 : 0);
    run.tokens -= static_cast<double>(creates);
    return creates;
}

Awaitable<void> State::warm(Self self, Run run) {
    ScopeExit ended([&] {
        --run->warming;
        --run->in_flight;
        run->settled.notify();
    });
    Status outcome = co_await self->warm_one(run);
    self->record(outcome);
    if (outcome && run->limited) run->wake.notify();
}

Awaitable<Status> State::warm_one(Run run) {
    CreateOptions create = options.create;
    create.timeout = options.idle_ttl;
    create.ready_timeout = options.warmup_ready_timeout;
    auto sandbox = co_await Sandbox::create(connection, std::move(create));
    if (!sandbox) co_return sandbox.error();
    Status outcome = co_await prepare_guarded(options.prepare, *sandbox);
    if (outcome && run->commits) {
        auto primary = co_await store->renew_primary_lock(options.name, options.owner,
                                                          options.primary_lock_ttl);
        if (!primary) outcome = primary.error();
        if (primary) run->primary = *primary;
        if (primary && *primary && run->commits) {
            outcome = co_await store->put_idle(options.name, sandbox->id());
            if (outcome) co_return outcome;
        }
    }
    Status killed = co_await sandbox->kill();
    static_cast<void>(killed);  // else it expires
    co_return outcome;
}

void State::record(const Status& outcome) {
    if (outcome) {
        failures = 0;
        backoff = {};
        backoff_until = {};
        last_error.reset();
        return;
    }
    ++failures;
    last_error = outcome.error().message();
    // Several that fail together are one reason to wait.
    if (!degraded() || backs_off()) return;
    backoff = backoff.count() == 0 ? options.first_backoff
                                   : std::min(backoff * 2, options.longest_backoff);
    backoff_until = Clock::now() + backoff;
}

}  // namespace opensandbox::sdk
