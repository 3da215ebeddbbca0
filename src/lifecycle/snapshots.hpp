#pragma once

#include "lifecycle/keyed_mutex.hpp"
#include "lifecycle/permits.hpp"
#include "lifecycle/sandbox_index.hpp"
#include "lifecycle/snapshot_index.hpp"
#include "net/task.hpp"
#include "runtime/runtime.hpp"

#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace opensandbox::lifecycle {

/// The life of snapshots (lifecycle 4): accepted at once, taken in the background, at most two at a
/// time; reads come from memory. Runs on one event loop. A part of the Lifecycle: everything given
/// is borrowed from it.
class Snapshots {
  public:
    /// Starts a task that keeps the owner alive until it ends.
    using Spawn = std::function<void(Awaitable<void> task, std::string_view name)>;

    /// `holds` is locked by sandbox id while a snapshot of it waits or is taken: what ends or
    /// stops the sandbox takes its turn there.
    Snapshots(asio::any_io_executor executor, Spawn spawn, asio::thread_pool& blocking,
              store::SnapshotStore& store, runtime::Runtime& runtime, const SandboxIndex& sandboxes,
              KeyedMutex& holds);

    /// Loads the rows and settles what was cut short. Once, after the runtime was started.
    Awaitable<Status> recover();
    /// Begins nothing more. What is being taken goes on until busy() is 0.
    void stop() { stopping_ = true; }
    [[nodiscard]] std::size_t busy() const { return busy_; }

    /// The new snapshot, Creating. The sandbox must be Running (409
    /// SNAPSHOT::INVALID_SOURCE_STATE).
    struct Accepted {
        std::string id;
        std::string json;
    };
    Awaitable<Result<Accepted>> create(std::string sandbox_id, std::optional<std::string> name);
    /// `SNAPSHOT::NOT_FOUND`, also for another tenant's. The JSON is valid until the next
    /// suspension.
    [[nodiscard]] Result<std::string_view> get(std::string_view id, std::string_view tenant) const;
    [[nodiscard]] std::string list(const SnapshotQuery& query) const { return index_.list(query); }
    /// 409 while it is being taken, and while something is made from it; then it stays Deleting and
    /// is tried again from time to time.
    Awaitable<Status> remove(std::string id, std::string tenant);
    /// To start a sandbox from: 404 unknown, 409 not Ready or nothing to start from.
    [[nodiscard]] Result<store::SnapshotRecord> source(const std::string& id,
                                                       std::string_view tenant) const;
    /// One that is taken apart; nobody removes it as long as this lives.
    struct Opened {
        KeyedMutex::Guard turn;
        runtime::SnapshotContent content;
    };
    /// As source() and Runtime::open_snapshot().
    Awaitable<Result<Opened>> open(std::string id, std::string tenant);
    [[nodiscard]] const SnapshotIndex& index() const { return index_; }

  private:
    using Change = std::function<Status(store::SnapshotStore&)>;

    Awaitable<Status> commit(Change change);
    Awaitable<void> take(std::string id);
    Awaitable<store::SnapshotRecord> taken(store::SnapshotRecord record);
    Awaitable<Status> remove_locked(std::string id);
    Awaitable<void> finish_removal(std::string id);
    Awaitable<void> retry_removal(std::string id);
    Awaitable<void> remove_orphan(runtime::SnapshotReference orphan);
    Awaitable<Status> settle(store::SnapshotRecord record);
    Awaitable<void> look_for_late();
    Awaitable<void> settle_late(runtime::SnapshotReference found);

    Spawn spawn_;
    asio::thread_pool& blocking_;
    store::SnapshotStore& store_;
    runtime::Runtime& runtime_;
    const SandboxIndex& sandboxes_;
    KeyedMutex& holds_;
    SnapshotIndex index_;
    Permits permits_;
    KeyedMutex turns_;
    std::set<std::string> retrying_;
    std::size_t busy_ = 0;
    bool stopping_ = false;
};

}  // namespace opensandbox::lifecycle
