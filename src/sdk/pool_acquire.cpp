#include "base/scope_exit.hpp"
#include "sdk/pool_error.hpp"
#include "sdk/pool_state.hpp"

namespace opensandbox::sdk {

using State = SandboxPool::State;

namespace {

bool may_create(AcquirePolicy policy) {
    return policy == AcquirePolicy::direct_create ||
           policy == AcquirePolicy::retry_next_idle_then_create;
}

bool retries(AcquirePolicy policy) {
    return policy == AcquirePolicy::retry_next_idle ||
           policy == AcquirePolicy::retry_next_idle_then_create;
}

/// Another sandbox would fare no better.
bool is_refused(const Error& error) {
    return error.code() == ErrorCode::unauthenticated ||
           error.code() == ErrorCode::permission_denied;
}

Error not_running(const std::string& pool) {
    return pool_error(ErrorCode::conflict, kPoolNotRunning,
                      "the pool '" + pool + "' does not run: start() comes first");
}

Error nothing_idle(const PoolOptions& options, AcquirePolicy policy, std::size_t tried,
                   const Error& last) {
    const std::string which = "the pool '" + options.name + "'";
    const std::string how = "; the policy is " + std::string(to_string(policy));
    if (tried == 0) {
        return pool_error(ErrorCode::resource_exhausted, kPoolEmpty,
                          which + " has no idle sandbox" + how);
    }
    return pool_error(ErrorCode::unavailable, kPoolAcquireFailed,
                      which + ": " + std::to_string(tried) +
                          " idle sandbox(es) did not answer, the last: " + last.message() + how);
}

Awaitable<Result<bool>> check_guarded(std::function<Awaitable<Result<bool>>(Sandbox)> check,
                                      Sandbox sandbox) {
    if (!check) co_return true;
    try {
        co_return co_await check(std::move(sandbox));
    } catch (const std::exception& thrown) {
        co_return Error(ErrorCode::internal, thrown.what());
    }
}

}  // namespace

std::string_view to_string(AcquirePolicy policy) {
    switch (policy) {
        case AcquirePolicy::direct_create: return "DIRECT_CREATE";
        case AcquirePolicy::fail_fast: return "FAIL_FAST";
        case AcquirePolicy::retry_next_idle: return "RETRY_NEXT_IDLE";
        case AcquirePolicy::retry_next_idle_then_create: return "RETRY_NEXT_IDLE_THEN_CREATE";
    }
    return "DIRECT_CREATE";
}

Awaitable<Status> State::expect_active(bool lenient) {
    auto state = co_await store->destroy_state(options.name);
    if (!state && lenient) co_return Status();
    if (!state) co_return state.error();
    if (*state != PoolDestroyState::active) co_return destroyed_error(options.name, *state);
    co_return Status();
}

Awaitable<Result<Sandbox>> State::acquire(Self self, AcquireOptions how) {
    Run run = self->run;
    if (!run || !run->running) {
        Status active = co_await self->expect_active(true);
        if (!active) co_return active.error();
        co_return not_running(self->options.name);
    }
    ++run->in_flight;
    ScopeExit ended([&] {
        --run->in_flight;
        run->settled.notify();
        // One is missing now.
        if (run->primary) run->wake.notify();
    });
    co_return co_await self->take_or_create(self, run, how);
}

Awaitable<Result<Sandbox>> State::take_or_create(Self self, Run run, AcquireOptions how) {
    const bool creates = may_create(how.policy);
    Status active = co_await expect_active(creates);
    if (!active) co_return active.error();
    const std::size_t most = retries(how.policy) ? options.max_acquire_retries : 1;
    std::size_t tried = 0;
    Error last;
    while (tried < most) {
        auto taken = co_await store->take_idle(options.name, min_remaining);
        if (!taken && !creates) co_return taken.error();
        if (!taken) break;
        discard(self, std::move(taken->discarded));
        if (!taken->sandbox_id) break;
        ++tried;
        auto sandbox = co_await connect(*taken->sandbox_id);
        if (sandbox) co_return co_await finish(self, run, how, std::move(*sandbox));
        last = sandbox.error();
        std::vector<std::string> stale{std::move(*taken->sandbox_id)};
        discard(self, std::move(stale));
        if (is_refused(last)) co_return last;
    }
    if (!creates) co_return nothing_idle(options, how.policy, tried, last);
    CreateOptions create = options.create;
    create.timeout = options.idle_ttl;
    create.ready_timeout = options.acquire_ready_timeout;
    create.skip_health_check = create.skip_health_check || options.skip_health_check;
    auto sandbox = co_await Sandbox::create(connection, std::move(create));
    if (!sandbox) co_return sandbox.error();
    co_return co_await finish(self, run, how, std::move(*sandbox));
}

Awaitable<Result<Sandbox>> State::connect(std::string id) {
    ConnectOptions connect;
    connect.ready_timeout = options.acquire_ready_timeout;
    connect.skip_health_check = options.skip_health_check;
    auto sandbox = co_await Sandbox::connect(connection, std::move(id), std::move(connect));
    if (!sandbox) co_return sandbox.error();
    auto good = co_await check_guarded(options.check, *sandbox);
    if (!good) co_return good.error().within("the check");
    if (!*good) co_return Error(ErrorCode::unavailable, "the check found it unfit");
    co_return sandbox;
}

Awaitable<Result<Sandbox>> State::finish(Self self, Run run, AcquireOptions how, Sandbox sandbox) {
    Status outcome;
    if (how.timeout) {
        auto renewed = co_await sandbox.renew(*how.timeout);
        if (!renewed) outcome = renewed.error();
    }
    if (outcome) outcome = co_await expect_active(may_create(how.policy));
    if (outcome && !run->commits) outcome = not_running(options.name);
    if (outcome) co_return sandbox;
    std::vector<std::string> unused{sandbox.id()};
    discard(self, std::move(unused));
    co_return outcome.error();
}

}  // namespace opensandbox::sdk
