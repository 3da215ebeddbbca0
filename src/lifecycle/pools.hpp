#pragma once

#include "lifecycle/admission.hpp"
#include "lifecycle/permits.hpp"
#include "lifecycle/pool_plan.hpp"
#include "lifecycle/snapshots.hpp"
#include "model/pool_request.hpp"
#include "net/task.hpp"

#include <boost/asio/thread_pool.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace opensandbox::lifecycle {

/// Named stocks of ready sandboxes (lifecycle 2.9). Idle ones are rows that are marked, known to
/// nobody but their pool; they do not expire. Refills run off the request path, two at a time. A
/// part of the Lifecycle: everything given is borrowed from it. Runs on one event loop.
class Pools {
  public:
    /// Starts a task that keeps the owner alive until it ends.
    using Spawn = std::function<void(Awaitable<void> task, std::string_view name)>;
    /// Tenant and name.
    using Key = std::pair<std::string, std::string>;

    Pools(asio::any_io_executor executor, Spawn spawn, asio::thread_pool& blocking,
          store::SandboxStore& store, runtime::Runtime& runtime, const AdmissionRules& rules,
          const Snapshots& snapshots);

    /// Loads the rows. Once, before the sandboxes are recovered.
    Awaitable<Status> load();
    /// At recovery: an idle sandbox that lives, and one that does not.
    void adopt(store::SandboxRecord record);
    void discard(const std::string& id);
    /// Begins to refill. Once, when all sandboxes are known.
    void start();
    void stop() { stopping_ = true; }
    [[nodiscard]] std::size_t busy() const { return busy_; }

    /// 501 POOL_NOT_SUPPORTED where the runtime has no pools.
    [[nodiscard]] Status supported() const;

    // The routes. JSON bodies; 404 KUBERNETES::POOL_NOT_FOUND, 409 POOL_ALREADY_EXISTS, 501
    // POOL_NOT_SUPPORTED where the runtime has no pools.
    Awaitable<Result<std::string>> create(model::PoolRequest request, std::string tenant);
    [[nodiscard]] Result<std::string> get(const Key& key) const;
    [[nodiscard]] Result<std::string> list(const std::string& tenant) const;
    Awaitable<Result<std::string>> resize(Key key, model::PoolCapacity capacity);
    /// Its idle sandboxes go with it; those that are somebody's stay.
    Awaitable<Status> remove(Key key);

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
    const Snapshots& snapshots_;
    Permits permits_;
    std::map<Key, EntryPtr> pools_;
    /// Idle ones being made, and whether they have ended meanwhile.
    std::map<std::string, bool> starting_;
    std::size_t busy_ = 0;
    bool started_ = false;
    bool stopping_ = false;
};

}  // namespace opensandbox::lifecycle
