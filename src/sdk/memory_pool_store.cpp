#include "opensandbox/pool_store.hpp"
#include "sdk/pool_error.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace opensandbox::sdk {

namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using Instant = std::chrono::sys_time<milliseconds>;

constexpr milliseconds kDefaultTtl = std::chrono::hours(24);

Instant clock_now() {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
}

/// The state of one name.
struct Pool {
    std::deque<IdleEntry> idle;
    milliseconds ttl = kDefaultTtl;
    std::optional<std::size_t> max_idle;
    std::string lock_owner;
    Instant locked_until{};
    PoolDestroyState destroy = PoolDestroyState::active;
    std::optional<Instant> destroyed_until;

    [[nodiscard]] PoolDestroyState destroy_state() const {
        if (destroyed_until && *destroyed_until <= clock_now()) return PoolDestroyState::active;
        return destroy;
    }
    [[nodiscard]] bool is_locked_by(const std::string& owner) const {
        return lock_owner == owner && locked_until > clock_now();
    }
    [[nodiscard]] auto find(const std::string& id) const {
        return std::ranges::find(idle, id, &IdleEntry::sandbox_id);
    }
};

class MemoryPoolStore final : public PoolStore {
  public:
    awaitable<Result<TakenIdle>> take_idle(std::string name, milliseconds min_remaining) override {
        auto& idle = pools_[name].idle;
        const Instant now = clock_now();
        TakenIdle taken;
        while (!idle.empty() && !taken.sandbox_id) {
            IdleEntry entry = std::move(idle.front());
            idle.pop_front();
            if (entry.expires_at > now + min_remaining) {
                taken.sandbox_id = std::move(entry.sandbox_id);
            } else if (entry.expires_at > now) {
                taken.discarded.push_back(std::move(entry.sandbox_id));
            }
        }
        co_return taken;
    }

    awaitable<Status> put_idle(std::string name, std::string sandbox_id) override {
        Pool& pool = pools_[name];
        if (auto state = pool.destroy_state(); state != PoolDestroyState::active) {
            co_return destroyed_error(name, state);
        }
        const Instant now = clock_now();
        if (auto known = pool.find(sandbox_id); known != pool.idle.end()) {
            if (known->expires_at > now) co_return Status();
            pool.idle.erase(known);
        }
        pool.idle.emplace_back(std::move(sandbox_id), now + pool.ttl);
        co_return Status();
    }

    awaitable<Status> remove_idle(std::string name, std::string sandbox_id) override {
        Pool& pool = pools_[name];
        if (auto known = pool.find(sandbox_id); known != pool.idle.end()) pool.idle.erase(known);
        co_return Status();
    }

    awaitable<Result<std::vector<std::string>>> reap_expired(std::string name,
                                                             milliseconds min_remaining) override {
        auto& idle = pools_[name].idle;
        const Instant now = clock_now();
        std::vector<std::string> alive;
        std::erase_if(idle, [&](IdleEntry& entry) {
            if (entry.expires_at > now + min_remaining) return false;
            if (entry.expires_at > now) alive.push_back(std::move(entry.sandbox_id));
            return true;
        });
        co_return alive;
    }

    awaitable<Result<bool>> acquire_primary_lock(std::string name, std::string owner,
                                                 milliseconds time_to_live) override {
        Pool& pool = pools_[name];
        const bool others = pool.locked_until > clock_now() && pool.lock_owner != owner;
        if (others || pool.destroy_state() != PoolDestroyState::active) co_return false;
        pool.lock_owner = std::move(owner);
        pool.locked_until = clock_now() + time_to_live;
        co_return true;
    }

    awaitable<Result<bool>> renew_primary_lock(std::string name, std::string owner,
                                               milliseconds time_to_live) override {
        Pool& pool = pools_[name];
        if (!pool.is_locked_by(owner) || pool.destroy_state() != PoolDestroyState::active) {
            co_return false;
        }
        pool.locked_until = clock_now() + time_to_live;
        co_return true;
    }

    awaitable<Status> release_primary_lock(std::string name, std::string owner) override {
        Pool& pool = pools_[name];
        if (pool.is_locked_by(owner)) pool.locked_until = Instant();
        co_return Status();
    }

    awaitable<Result<std::size_t>> count_idle(std::string name) override {
        auto entries = co_await idle_entries(std::move(name));
        if (!entries) co_return entries.error();
        co_return entries->size();
    }

    awaitable<Result<std::vector<IdleEntry>>> idle_entries(std::string name) override {
        std::vector<IdleEntry> alive;
        const Instant now = clock_now();
        std::ranges::copy_if(pools_[name].idle, std::back_inserter(alive),
                             [&](const IdleEntry& entry) { return entry.expires_at > now; });
        co_return alive;
    }

    awaitable<Result<std::optional<std::size_t>>> max_idle(std::string name) override {
        co_return pools_[name].max_idle;
    }

    awaitable<Status> set_max_idle(std::string name, std::size_t max_idle) override {
        Pool& pool = pools_[name];
        if (auto state = pool.destroy_state(); state != PoolDestroyState::active) {
            co_return destroyed_error(name, state);
        }
        pool.max_idle = max_idle;
        co_return Status();
    }

    awaitable<Status> set_idle_ttl(std::string name, milliseconds ttl) override {
        Pool& pool = pools_[name];
        if (auto state = pool.destroy_state(); state != PoolDestroyState::active) {
            co_return destroyed_error(name, state);
        }
        pool.ttl = ttl;
        co_return Status();
    }

    awaitable<Result<PoolDestroyState>> destroy_state(std::string name) override {
        co_return pools_[name].destroy_state();
    }

    awaitable<Status> begin_destroy(std::string name, std::string /*owner*/) override {
        Pool& pool = pools_[name];
        if (auto state = pool.destroy_state(); state == PoolDestroyState::destroyed) {
            co_return destroyed_error(name, state);
        }
        pool.destroy = PoolDestroyState::destroying;
        pool.destroyed_until.reset();
        co_return Status();
    }

    awaitable<Status> clear(std::string name) override {
        Pool kept;
        Pool& pool = pools_[name];
        kept.destroy = pool.destroy;
        kept.destroyed_until = pool.destroyed_until;
        pool = std::move(kept);
        co_return Status();
    }

    awaitable<Status> mark_destroyed(std::string name, std::string /*owner*/,
                                     std::optional<milliseconds> keep) override {
        Pool& pool = pools_[name];
        pool.destroy = PoolDestroyState::destroyed;
        pool.destroyed_until.reset();
        if (keep) pool.destroyed_until = clock_now() + *keep;
        co_return Status();
    }

  private:
    std::map<std::string, Pool> pools_;
};

}  // namespace

std::string_view to_string(PoolDestroyState state) {
    switch (state) {
        case PoolDestroyState::active: return "ACTIVE";
        case PoolDestroyState::destroying: return "DESTROYING";
        case PoolDestroyState::destroyed: return "DESTROYED";
    }
    return "ACTIVE";
}

std::shared_ptr<PoolStore> memory_pool_store() {
    return std::make_shared<MemoryPoolStore>();
}

}  // namespace opensandbox::sdk
