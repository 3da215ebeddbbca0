#include "lifecycle/host/host_snapshots.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/host/recovery_plan.hpp"
#include "lifecycle/transition.hpp"

namespace opensandbox::lifecycle {
namespace {

constexpr std::size_t kAtATime = 2;
/// A removal that failed is tried again after this time.
constexpr std::chrono::seconds kSnapshotRetry{30};
/// What a server that died had asked for may still come to be, and is looked for this long.
constexpr std::chrono::minutes kDoubt{10};
constexpr std::chrono::milliseconds kFirstLook{500};
constexpr std::chrono::milliseconds kLongestLook{30'000};

using model::SnapshotState;

Error not_found(std::string_view id) {
    return {ErrorCode::not_found, "SNAPSHOT::NOT_FOUND",
            "Snapshot " + std::string(id) + " not found."};
}

}  // namespace

HostSnapshots::HostSnapshots(asio::any_io_executor executor, Spawn spawn,
                             asio::thread_pool& blocking, store::SnapshotStore& store,
                             runtime::Runtime& runtime, const SandboxIndex& sandboxes,
                             KeyedMutex& holds)
    : spawn_(std::move(spawn)),
      blocking_(blocking),
      store_(store),
      runtime_(runtime),
      sandboxes_(sandboxes),
      holds_(holds),
      permits_(executor, kAtATime),
      turns_(executor) {}

Awaitable<Status> HostSnapshots::commit(Change change) {
    store::SnapshotStore& store = store_;
    std::function<Status()> work = [change = std::move(change), &store] { return change(store); };
    co_return co_await net::run_blocking<Status>(blocking_, std::move(work));
}

Result<std::string_view> HostSnapshots::get(std::string_view id, std::string_view tenant) const {
    const auto* entry = index_.find(id);
    if (!entry || !is_shown_to(tenant, entry->record.tenant)) return not_found(id);
    return std::string_view(entry->json);
}

Result<store::SnapshotRecord> HostSnapshots::source(const std::string& id,
                                                    std::string_view tenant) const {
    const auto* entry = index_.find(id);
    if (!entry || !is_shown_to(tenant, entry->record.tenant)) return not_found(id);
    const store::SnapshotRecord& record = entry->record;
    if (record.snapshot.status.state != SnapshotState::ready) {
        return Error(ErrorCode::conflict, "SNAPSHOT::NOT_READY",
                     "Snapshot " + id + " is " +
                         std::string(model::to_string(record.snapshot.status.state)) +
                         ", not Ready.");
    }
    if (record.reference.empty()) {
        return Error(ErrorCode::conflict, "SNAPSHOT::INVALID_RESTORE_CONFIG",
                     "Snapshot " + id + " names nothing to start from.");
    }
    return record;
}

Awaitable<Result<HostSnapshots::Opened>> HostSnapshots::open(std::string id, std::string tenant) {
    using Outcome = Result<Opened>;
    auto turn = co_await turns_.lock(id);
    auto record = source(id, tenant);
    if (!record) co_return Outcome(record.error());
    runtime::SnapshotReference reference(id, record->reference);
    auto content = co_await runtime_.open_snapshot(std::move(reference));
    if (!content) co_return Outcome(content.error());
    co_return Outcome(
        Opened(std::make_shared<KeyedMutex::Guard>(std::move(turn)), std::move(content.value())));
}

Awaitable<Result<HostSnapshots::Accepted>> HostSnapshots::create(std::string sandbox_id,
                                                                 std::optional<std::string> name) {
    const auto* entry = sandboxes_.find(sandbox_id);
    bool running = entry && entry->record.sandbox.status.state == model::SandboxState::running;
    if (!running) {
        co_return Error(ErrorCode::conflict, "SNAPSHOT::INVALID_SOURCE_STATE",
                        "Sandbox " + sandbox_id + " is not Running.");
    }
    store::SnapshotRecord record;
    record.snapshot.id = new_uuid();
    record.snapshot.sandbox_id = sandbox_id;
    record.snapshot.name = std::move(name);
    record.snapshot.created_at = now();
    record.snapshot.status = snapshot_accepted(record.snapshot.created_at);
    record.tenant = entry->record.tenant;
    record.base_image = entry->record.base_image;
    Change insert = [record](store::SnapshotStore& store) { return store.insert(record); };
    auto inserted = co_await commit(std::move(insert));
    if (!inserted) co_return inserted.error().within("row of the snapshot");
    Accepted accepted;
    accepted.id = record.snapshot.id;
    accepted.json = model::to_json(record.snapshot);
    index_.put(std::move(record));
    ++busy_;
    spawn_(take(accepted.id), "take a snapshot");
    co_return accepted;
}

/// In line behind other snapshots. The sandbox is held from the beginning, so that a removal or a
/// pause asked for after the snapshot comes after it.
Awaitable<void> HostSnapshots::take(std::string id) {
    ScopeExit idle([this] { --busy_; });
    store::SnapshotRecord record = index_.find(id)->record;
    auto hold = co_await holds_.lock(record.snapshot.sandbox_id);
    auto permit = co_await permits_.acquire();
    // The next start finds the row Creating and settles it.
    if (stopping_) co_return;
    record = co_await taken(std::move(record));
    Change change = [record](store::SnapshotStore& store) { return store.set_status(record); };
    auto committed = co_await commit(std::move(change));
    if (!committed) {
        log::error("cannot record a snapshot; the next start does",
                   {{"snapshot", id}, {"error", committed.error().message()}});
    }
    log::info("snapshot taken", {{"snapshot", id},
                                 {"sandbox", record.snapshot.sandbox_id},
                                 {"reason", record.snapshot.status.reason}});
    index_.put(std::move(record));
}

/// The record with the outcome.
Awaitable<store::SnapshotRecord> HostSnapshots::taken(store::SnapshotRecord record) {
    const std::string sandbox_id = record.snapshot.sandbox_id;
    const auto* entry = sandboxes_.find(sandbox_id);
    if (!entry || entry->record.sandbox.status.state != model::SandboxState::running) {
        Error gone(ErrorCode::conflict,
                   "Sandbox " + sandbox_id + " ended or was paused before its snapshot was taken.");
        record.snapshot.status = snapshot_failed(gone, now());
        co_return record;
    }
    auto reference = co_await runtime_.snapshot(sandbox_id, record.snapshot.id);
    if (!reference) {
        auto error = reference.error();
        record.snapshot.status = snapshot_failed(error, now());
    } else if (reference->data.empty()) {
        record.snapshot.status =
            model::SnapshotStatus(SnapshotState::failed, "snapshot_runtime_missing_result",
                                  "The runtime did not say what it made.", now());
    } else {
        record.reference = reference->data;
        record.snapshot.status = snapshot_ready(now());
    }
    co_return record;
}

Awaitable<Status> HostSnapshots::remove(std::string id, std::string tenant) {
    auto turn = co_await turns_.lock(id);
    const auto* entry = index_.find(id);
    if (!entry || !is_shown_to(tenant, entry->record.tenant)) co_return not_found(id);
    if (entry->record.snapshot.status.state == SnapshotState::creating) {
        co_return Error(ErrorCode::conflict, "SNAPSHOT::INVALID_STATE",
                        "Snapshot " + id + " is being taken; delete it when it is Ready.");
    }
    co_return co_await remove_locked(std::move(id));
}

/// With its turn held. Written first: a removal cut short is finished later.
Awaitable<Status> HostSnapshots::remove_locked(std::string id) {
    store::SnapshotRecord record = index_.find(id)->record;
    if (record.snapshot.status.state != SnapshotState::deleting) {
        record.snapshot.status = snapshot_deleting(now());
        Change mark = [record](store::SnapshotStore& store) { return store.set_status(record); };
        auto marked = co_await commit(std::move(mark));
        if (!marked) co_return marked.error().within("row of the snapshot");
        index_.put(record);
    }
    runtime::SnapshotReference reference(id, record.reference);
    auto removed = co_await runtime_.remove_snapshot(std::move(reference));
    if (removed) {
        Change drop = [id](store::SnapshotStore& store) { return store.remove(id); };
        removed = co_await commit(std::move(drop));
    }
    if (removed) {
        index_.erase(id);
        log::info("snapshot removed", {{"snapshot", id}});
        co_return Status();
    }
    auto error = removed.error();
    log::warn("cannot remove a snapshot yet", {{"snapshot", id}, {"error", error.message()}});
    if (retrying_.insert(id).second) spawn_(retry_removal(id), "remove a snapshot again");
    if (error.code() == ErrorCode::conflict) {
        co_return Error(ErrorCode::conflict, "SNAPSHOT::DELETE_CONFLICT",
                        "Snapshot " + id + " is in use: " + error.message());
    }
    co_return error.code() == ErrorCode::unavailable
        ? error
        : Error(ErrorCode::internal, error.wire(), "Snapshot " + id + ": " + error.message());
}

Awaitable<void> HostSnapshots::retry_removal(std::string id) {
    while (!stopping_) {
        co_await net::sleep_for(kSnapshotRetry);
        auto turn = co_await turns_.lock(id);
        if (stopping_ || !index_.find(id)) break;
        auto removed = co_await remove_locked(id);
        if (removed) break;
    }
    retrying_.erase(id);
}

Awaitable<Status> HostSnapshots::recover() {
    store::SnapshotStore& store = store_;
    using Rows = Result<std::vector<store::SnapshotRecord>>;
    std::function<Rows()> load = [&store] { return store.load(); };
    auto rows = co_await net::run_blocking<Rows>(blocking_, std::move(load));
    if (!rows) co_return rows.error();
    for (const auto& row : rows.value())
        index_.put(row);
    std::optional<std::vector<runtime::SnapshotReference>> existing;
    auto listed = co_await runtime_.list_snapshots();
    if (listed) {
        existing = std::move(listed.value());
    } else {
        log::error("cannot list snapshots", {{"error", listed.error().message()}});
    }
    auto plan = plan_snapshots(rows.value(), existing, now());
    for (const auto& record : plan.changed) {
        auto settled = co_await settle(record);
        if (!settled) co_return settled;
    }
    for (const std::string& id : plan.remove)
        spawn_(finish_removal(id), "finish a removal");
    for (const auto& orphan : plan.orphans)
        spawn_(remove_orphan(orphan), "remove an orphan snapshot");
    auto able = runtime_.capabilities();
    if (able.snapshots && able.outlives_requests) {
        spawn_(look_for_late(), "look for late snapshots");
    }
    co_return Status();
}

Awaitable<Status> HostSnapshots::settle(store::SnapshotRecord record) {
    Change change = [record](store::SnapshotStore& store) { return store.set_status(record); };
    auto committed = co_await commit(std::move(change));
    if (!committed) co_return committed;
    log::warn("snapshot settled",
              {{"snapshot", record.snapshot.id}, {"reason", record.snapshot.status.reason}});
    index_.put(std::move(record));
    co_return Status();
}

/// A backend of its own goes on with what the dead server began, and is done after the rows were
/// settled without it.
Awaitable<void> HostSnapshots::look_for_late() {
    auto until = std::chrono::steady_clock::now() + kDoubt;
    auto wait = kFirstLook;
    while (!stopping_ && std::chrono::steady_clock::now() < until) {
        co_await net::sleep_for(wait);
        wait = std::min(wait * 2, kLongestLook);
        auto listed = co_await runtime_.list_snapshots();
        if (!listed) continue;
        for (const auto& found : listed.value())
            co_await settle_late(found);
    }
}

Awaitable<void> HostSnapshots::settle_late(runtime::SnapshotReference found) {
    auto turn = co_await turns_.lock(found.id);
    const auto* entry = index_.find(found.id);
    if (!entry) {
        // Rows are written first and dropped last: it is nobody's.
        if (found.owned) co_await remove_orphan(std::move(found));
        co_return;
    }
    if (entry->record.snapshot.status.state != SnapshotState::failed) co_return;
    std::vector<store::SnapshotRecord> rows{entry->record};
    auto plan = plan_snapshots(rows, std::vector<runtime::SnapshotReference>{found}, now());
    for (const auto& record : plan.changed) {
        auto settled = co_await settle(record);
        if (!settled) {
            log::error("cannot record a snapshot; the next start does",
                       {{"snapshot", found.id}, {"error", settled.error().message()}});
        }
    }
}

Awaitable<void> HostSnapshots::finish_removal(std::string id) {
    auto turn = co_await turns_.lock(id);
    if (index_.find(id)) (void)co_await remove_locked(id);
}

Awaitable<void> HostSnapshots::remove_orphan(runtime::SnapshotReference orphan) {
    auto removed = co_await runtime_.remove_snapshot(orphan);
    if (removed) {
        log::warn("snapshot without a row removed", {{"snapshot", orphan.id}});
    } else {
        log::error("cannot remove a snapshot without a row",
                   {{"snapshot", orphan.id}, {"error", removed.error().message()}});
    }
}

}  // namespace opensandbox::lifecycle
