#pragma once

#include "opensandbox/pool_store.hpp"
#include "opensandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::sdk {

/// What acquire() does when no idle sandbox is there or the one it took does not answer.
enum class AcquirePolicy : std::uint8_t {
    direct_create,               ///< one idle sandbox, else a new one
    fail_fast,                   ///< one idle sandbox, else POOL_EMPTY
    retry_next_idle,             ///< idle sandboxes, up to max_acquire_retries of them
    retry_next_idle_then_create  ///< the same, else a new one
};
std::string_view to_string(AcquirePolicy policy);

enum class PoolState : std::uint8_t {
    healthy,
    degraded,  ///< creating failed degraded_threshold times in a row; tried again ever more rarely
    draining,  ///< shutting down, what was begun is finished
    stopped,   ///< not started, or shut down
};
std::string_view to_string(PoolState state);  ///< "HEALTHY", …

/// How a pool works. Sandboxes are made from `create`, with `idle_ttl` as their timeout.
struct PoolOptions {
    /// Pools of one name and store are one pool. Not blank.
    std::string name;
    CreateOptions create;
    /// How many idle sandboxes to keep ready, over all that share the name; up to 100 000. A store
    /// that is shared passes the value on: the last start() or resize() counts.
    std::size_t max_idle = 0;
    std::shared_ptr<PoolStore> store = memory_pool_store();
    /// Who this is towards the others, unique among them; made up when empty.
    std::string owner;

    std::size_t warmup_concurrency = 128;        ///< creates in flight, at least 1
    std::size_t warmup_creates_per_second = 10;  ///< at least 1
    std::chrono::milliseconds warmup_ready_timeout{30'000};
    std::chrono::milliseconds acquire_ready_timeout{30'000};
    bool skip_health_check = false;       ///< of idle sandboxes when they are acquired
    std::size_t max_acquire_retries = 3;  ///< at least 1

    /// How long a sandbox may wait; at least 60 s with most servers.
    std::chrono::seconds idle_ttl{24 * 3600};
    /// One that has less left is deleted, not given out. Empty: 60 s, at most half of `idle_ttl`.
    std::optional<std::chrono::milliseconds> min_remaining;

    /// Only who holds the lock fills and shrinks the pool. It is renewed three times within this.
    std::chrono::milliseconds primary_lock_ttl{60'000};
    /// How often the pool is looked at when nothing happens.
    std::chrono::milliseconds reconcile_interval{1'000};
    std::size_t degraded_threshold = 3;  ///< failures in a row, at least 1
    /// The pause once degraded; doubled with every further failure, up to longest_backoff.
    std::chrono::milliseconds first_backoff{1'000};
    std::chrono::milliseconds longest_backoff{60'000};
    std::chrono::milliseconds drain_timeout{30'000};

    /// Called with every new sandbox before it counts as idle; one that fails is deleted.
    std::function<boost::asio::awaitable<Status>(Sandbox)> prepare;
    /// Called with an idle sandbox that answers before it is given out; false or an Error: it is
    /// stale.
    std::function<boost::asio::awaitable<Result<bool>>(Sandbox)> check;
};

struct AcquireOptions {
    AcquirePolicy policy = AcquirePolicy::direct_create;
    /// How long the sandbox lives from now on, at least 60 s; empty: what is left of `idle_ttl`.
    std::optional<std::chrono::seconds> timeout;
};

struct PoolSnapshot {
    PoolState state = PoolState::stopped;
    std::size_t idle_count = 0;  ///< over all that share the pool
    std::size_t max_idle = 0;
    std::size_t warming = 0;        ///< sandboxes that this process is making for the pool
    std::size_t failure_count = 0;  ///< failures in a row
    bool backoff_active = false;
    bool primary = false;  ///< whether this process fills the pool
    std::optional<std::string> last_error;
    std::size_t in_flight_operations = 0;
};

struct PoolDestroyResult {
    std::size_t drained = 0;  ///< taken from the store
    std::size_t killed = 0;   ///< of them, deleted
    /// False when somebody had destroyed the pool before.
    bool cleared = false;
};

/// Keeps sandboxes ready, so that who needs one does not wait for it to be made:
///
///     PoolOptions options("builders", CreateOptions("python:3.12"), 5);
///     SandboxPool pool = SandboxPool::open(server, options).value();
///     co_await pool.start();
///     Result<Sandbox> sandbox = co_await pool.acquire();
///     …
///     co_await sandbox->kill();        // a used sandbox never goes back
///     co_await pool.shutdown();
///
/// It works in the background while the connection's executor runs. Cheap to copy: copies are the
/// same pool. Idle sandboxes outlive a pool that is shut down or dropped, for others who share it
/// and up to their expiry; see release_idle(). Errors carry the wire codes of the published SDKs:
/// POOL_EMPTY, POOL_ACQUIRE_FAILED, POOL_NOT_RUNNING, POOL_DESTROYED, POOL_STATE_STORE_UNAVAILABLE,
/// POOL_DESTROY_INCOMPLETE.
class SandboxPool {
  public:
    /// Checks the options (`invalid_argument` names the one that is wrong); asks nobody yet.
    static Result<SandboxPool> open(Connection connection, PoolOptions options);

    /// Starts filling the pool and returns; a pool that runs goes on. Also after a shutdown.
    boost::asio::awaitable<Status> start();
    /// A sandbox that answers. It is the caller's from now on, also to delete.
    boost::asio::awaitable<Result<Sandbox>> acquire(AcquireOptions options = {});
    /// For all that share the pool.
    boost::asio::awaitable<Status> resize(std::size_t max_idle);
    boost::asio::awaitable<Result<PoolSnapshot>> snapshot() const;
    boost::asio::awaitable<Result<std::vector<IdleEntry>>> idle_entries() const;
    /// Deletes all idle sandboxes, everybody's; returns how many were taken out. A pool that runs
    /// is filled again.
    boost::asio::awaitable<Result<std::size_t>> release_idle();
    /// Ends this process's part. Graceful: waits up to `drain_timeout` for what is under way. A
    /// sandbox that is being made for the pool otherwise is deleted as soon as it is there.
    boost::asio::awaitable<Status> shutdown(bool graceful = true);
    /// Ends the pool for everybody: deletes its idle sandboxes and makes its name unusable for
    /// `keep` (empty: for ever). Others who share it stop by themselves.
    boost::asio::awaitable<Result<PoolDestroyResult>> destroy(
        std::optional<std::chrono::milliseconds> keep = std::chrono::hours(7 * 24));

    /// For the library's own use.
    struct State;

  private:
    explicit SandboxPool(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::sdk
