#pragma once

#include "lifecycle/admission.hpp"
#include "lifecycle/host/host_snapshots.hpp"
#include "lifecycle/host/permits.hpp"
#include "lifecycle/host/pool_plan.hpp"
#include "lifecycle/pools.hpp"
#include "net/task.hpp"

#include <boost/asio/thread_pool.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::lifecycle {

/// Stocks of sandboxes that run on this host. Idle ones are rows that are marked, known to
/// nobody but their pool; they do not expire. Refills run off the request path, two at a time. A
/// part of the Lifecycle: everything given is borrowed from it. Runs on one event loop.
class HostPools final : public Pools {
  public:
    /// Starts a task that keeps the owner alive until it ends.
    using Spawn = std::function<void(Awaitable<void> task, std::string_view name)>;

    HostPools(asio::any_io_executor executor, Spawn spawn, asio::thread_pool& blocking,
              store::SandboxStore& store, runtime::Runtime& runtime, const AdmissionRules& rules,
              const HostSnapshots& snapshots);

    /// Loads the rows. Once, before the sandboxes are recovered.
    Awaitable<Status> load();
    /// At recovery: an idle sandbox that lives, and one that does not.
    void adopt(store::SandboxRecord record);
    void discard(const std::string& id);
    /// Begins to refill. Once, when all sandboxes are known.
    void start();
    void stop() { stopping_ = true; }
    [[nodiscard]] std::size_t busy() const { return busy_; }

    [[nodiscard]] Status supported() const override;
    Awaitable<Result<std::string>> create(model::PoolRequest request, std::string tenant) override;
    [[nodiscard]] Result<std::string> get(const Key& key) const override;
    [[nodiscard]] Result<std::string> list(const std::string& tenant) const override;
    Awaitable<Result<std::string>> resize(Key key, model::PoolCapacity capacity) override;
    Awaitable<Status> remove(Key key) override;

    // For creates.

    /// What its sandboxes are made of; 429 POOL_CAPACITY_EXHAUSTED when there is no room.
    [[nodiscard]] Result<model::CreateRequest> open(const Key& key) const;
    /// Those of a tenant, those with an idle sandbox first.
    [[nodiscard]] std::vector<Key> candidates(const std::string& tenant) const;
    [[nodiscard]] bool has_idle(const Key& key) const;
    /// Takes an idle one out; empty when there is none.
    std::optional<store::SandboxRecord> take(const Key& key);
    /// Puts one back that did not become anybody's.
    void give_back(store::SandboxRecord record);
    /// A sandbox of that pool became somebody's, or is gone.
    void count_allocated(const Key& key, std::int64_t change);
    /// True when it was an idle one: it is forgotten and made anew.
    bool handle_exit(const std::string& id);

  private:
    struct Entry {
        store::PoolRecord record;
        model::CreateRequest base;
        std::optional<Error> refused;  ///< why its template is not accepted any more
        std::deque<store::SandboxRecord> idle;
        std::int64_t making = 0;
        std::int64_t allocated = 0;
        bool waiting = false;  ///< a refill failed; the next waits a while

        [[nodiscard]] PoolCounts counts() const {
            return {static_cast<std::int64_t>(idle.size()), making, allocated};
        }
        [[nodiscard]] std::string json() const;
    };
    using EntryPtr = std::shared_ptr<Entry>;
    using Change = std::function<Status(store::SandboxStore&)>;

    Awaitable<Status> commit(Change change);
    [[nodiscard]] Result<EntryPtr> find(const Key& key) const;
    [[nodiscard]] Result<Admitted> admit_idle(const model::CreateRequest& base,
                                              const std::string& tenant) const;
    void reconcile(const EntryPtr& entry);
    Awaitable<void> make_idle(EntryPtr entry);
    Awaitable<Result<store::SandboxRecord>> made(EntryPtr entry);
    Awaitable<void> wait_and_reconcile(EntryPtr entry);
    Awaitable<void> destroy(std::string id);
    [[nodiscard]] bool is_current(const EntryPtr& entry) const;

    Spawn spawn_;
    asio::thread_pool& blocking_;
    store::SandboxStore& store_;
    runtime::Runtime& runtime_;
    const AdmissionRules& rules_;
    const HostSnapshots& snapshots_;
    Permits permits_;
    std::map<Key, EntryPtr> pools_;
    /// Idle ones being made, and whether they have ended meanwhile.
    std::map<std::string, bool> starting_;
    std::size_t busy_ = 0;
    bool started_ = false;
    bool stopping_ = false;
};

}  // namespace opensandbox::lifecycle
