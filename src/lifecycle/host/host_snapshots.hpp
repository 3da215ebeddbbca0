#pragma once

#include "lifecycle/host/keyed_mutex.hpp"
#include "lifecycle/host/permits.hpp"
#include "lifecycle/sandbox_index.hpp"
#include "lifecycle/snapshots.hpp"
#include "net/task.hpp"

#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace opensandbox::lifecycle {

/// Snapshots that the runtime of this host keeps, at most two taken at a time. A part of the
/// HostLifecycle: everything given is borrowed from it.
class HostSnapshots final : public Snapshots {
  public:
    /// Starts a task that keeps the owner alive until it ends.
    using Spawn = std::function<void(Awaitable<void> task, std::string_view name)>;

    /// `holds` is locked by sandbox id while a snapshot of it waits or is taken: what ends or
    /// stops the sandbox takes its turn there.
    HostSnapshots(asio::any_io_executor executor, Spawn spawn, asio::thread_pool& blocking,
                  store::SnapshotStore& store, runtime::Runtime& runtime,
                  const SandboxIndex& sandboxes, KeyedMutex& holds);

    /// Loads the rows and settles what was cut short. Once, after the runtime was started.
    Awaitable<Status> recover();
    /// Begins nothing more. What is being taken goes on until busy() is 0.
    void stop() { stopping_ = true; }
    [[nodiscard]] std::size_t busy() const { return busy_; }

    Awaitable<Result<Accepted>> create(std::string sandbox_id,
                                       std::optional<std::string> name) override;
    [[nodiscard]] Result<std::string_view> get(std::string_view id,
                                               std::string_view tenant) const override;
    Awaitable<Status> remove(std::string id, std::string tenant) override;
    Awaitable<Result<Opened>> open(std::string id, std::string tenant) override;
    [[nodiscard]] const SnapshotIndex& index() const override { return index_; }
    /// To start a sandbox from: 404 unknown, 409 not Ready or nothing to start from.
    [[nodiscard]] Result<store::SnapshotRecord> source(const std::string& id,
                                                       std::string_view tenant) const;

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
