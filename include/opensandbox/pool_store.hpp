#pragma once

#include "opensandbox/error.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::sdk {

/// A sandbox that waits in a pool.
struct IdleEntry {
    std::string sandbox_id;
    std::chrono::sys_time<std::chrono::milliseconds> expires_at{};
};

/// What was taken from a pool.
struct TakenIdle {
    std::optional<std::string> sandbox_id;  ///< empty: none was left
    /// Taken out because too little was left of their time, though they still live: to be deleted.
    std::vector<std::string> discarded;
};

/// Whether a pool's name is in use, or being given up.
enum class PoolDestroyState : std::uint8_t { active, destroying, destroyed };
std::string_view to_string(PoolDestroyState state);  ///< "ACTIVE", …

/// Where pools keep which sandboxes are idle, and who of those that share a name fills it. One
/// store serves any number of pools, told apart by name; every function is atomic towards all that
/// use the store. Writing to a name that is being destroyed fails with the wire code
/// POOL_DESTROYED; a store that does not answer, with POOL_STATE_STORE_UNAVAILABLE.
class PoolStore {
  public:
    virtual ~PoolStore() = default;

    /// Takes the sandbox that has been idle for longest and lives on for more than `min_remaining`.
    virtual boost::asio::awaitable<Result<TakenIdle>> take_idle(
        std::string pool, std::chrono::milliseconds min_remaining) = 0;
    /// Adds an idle sandbox for the pool's idle time to live; nothing changes when it is there.
    virtual boost::asio::awaitable<Status> put_idle(std::string pool, std::string sandbox_id) = 0;
    virtual boost::asio::awaitable<Status> remove_idle(std::string pool,
                                                       std::string sandbox_id) = 0;
    /// Takes out all that do not live on for more than `min_remaining`; returns those still alive.
    virtual boost::asio::awaitable<Result<std::vector<std::string>>> reap_expired(
        std::string pool, std::chrono::milliseconds min_remaining) = 0;

    /// True when `owner` has the lock now; one that it has already is prolonged.
    virtual boost::asio::awaitable<Result<bool>> acquire_primary_lock(
        std::string pool, std::string owner, std::chrono::milliseconds time_to_live) = 0;
    /// True when `owner` still had it.
    virtual boost::asio::awaitable<Result<bool>> renew_primary_lock(
        std::string pool, std::string owner, std::chrono::milliseconds time_to_live) = 0;
    /// Only if `owner` has it.
    virtual boost::asio::awaitable<Status> release_primary_lock(std::string pool,
                                                                std::string owner) = 0;

    virtual boost::asio::awaitable<Result<std::size_t>> count_idle(std::string pool) = 0;
    /// In the order in which they will be taken.
    virtual boost::asio::awaitable<Result<std::vector<IdleEntry>>> idle_entries(
        std::string pool) = 0;

    /// How many idle sandboxes the pool is to hold; empty when nobody said so here.
    virtual boost::asio::awaitable<Result<std::optional<std::size_t>>> max_idle(
        std::string pool) = 0;
    virtual boost::asio::awaitable<Status> set_max_idle(std::string pool, std::size_t max_idle) = 0;
    /// For sandboxes put from now on; 24 hours unless set. At least 1 ms.
    virtual boost::asio::awaitable<Status> set_idle_ttl(std::string pool,
                                                        std::chrono::milliseconds ttl) = 0;

    virtual boost::asio::awaitable<Result<PoolDestroyState>> destroy_state(std::string pool) = 0;
    /// From now on nothing can be put. Fails with POOL_DESTROYED when that is over already.
    virtual boost::asio::awaitable<Status> begin_destroy(std::string pool, std::string owner) = 0;
    /// Forgets all but the state of destruction.
    virtual boost::asio::awaitable<Status> clear(std::string pool) = 0;
    /// The name stays unusable for so long; empty: for ever.
    virtual boost::asio::awaitable<Status> mark_destroyed(
        std::string pool, std::string owner, std::optional<std::chrono::milliseconds> keep) = 0;
};

/// A store in this process, for pools that share it and one event loop.
std::shared_ptr<PoolStore> memory_pool_store();

struct RedisStoreOptions {
    /// redis://[[user]:password@]host[:port][/database]; TLS (rediss://) is `unsupported`.
    std::string url = "redis://127.0.0.1:6379";
    std::string key_prefix = "opensandbox:pool";
    /// For one command, connecting included; at least 1 ms.
    std::chrono::milliseconds timeout{5'000};
};

/// A store in Redis 5 or newer, for pools of any number of processes and machines, those of the
/// published SDKs among them: keys and values are the same. Connects when it is first used, and
/// again whenever the connection was lost. `invalid_argument` for a malformed URL.
Result<std::shared_ptr<PoolStore>> redis_pool_store(boost::asio::any_io_executor executor,
                                                    RedisStoreOptions options = {});

}  // namespace opensandbox::sdk
