#include "lifecycle/host/recovery_plan.hpp"
#include "lifecycle/transition.hpp"
#include "unit/lifecycle/lifecycle_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using model::SnapshotState;
using test_support::LifecycleFixture;

namespace {

struct SnapshotFixture : LifecycleFixture {
    SnapshotFixture() {
        runtime.able.snapshots = true;
        runtime.able.pause = true;
        start();
    }
    Result<Snapshots::Accepted> take(const std::string& sandbox,
                                     std::optional<std::string> name = std::nullopt) {
        Result<Snapshots::Accepted> accepted = Error();
        loop.run([&]() -> Awaitable<void> {
            accepted = co_await life->snapshots().create(sandbox, name);
        });
        return accepted;
    }
    /// Takes one and waits until it is settled.
    std::string taken(const std::string& sandbox, std::optional<std::string> name = std::nullopt) {
        auto accepted = take(sandbox, std::move(name));
        REQUIRE(accepted);
        settle(accepted->id);
        return accepted->id;
    }
    void settle(const std::string& id) {
        until([&] { return state(id) != SnapshotState::creating; });
    }
    [[nodiscard]] SnapshotState state(const std::string& id) const { return status(id).state; }
    [[nodiscard]] model::SnapshotStatus status(const std::string& id) const {
        const auto* entry = life->snapshots().index().find(id);
        REQUIRE(entry);
        return entry->record.snapshot.status;
    }
    Status remove(const std::string& id) {
        Status done;
        loop.run([&]() -> Awaitable<void> {
            done = co_await life->snapshots().remove(id, std::string());
        });
        return done;
    }
    Result<Lifecycle::Created> restore(const std::string& snapshot) {
        Result<Lifecycle::Created> made = Error();
        loop.run([&]() -> Awaitable<void> {
            model::CreateRequest request;
            request.snapshot_id = snapshot;
            made = co_await life->create(request, std::nullopt, {});
        });
        return made;
    }
    std::shared_ptr<net::Latch> hold() {
        runtime.hold_snapshot = std::make_shared<net::Latch>(loop.executor());
        return runtime.hold_snapshot;
    }
};

}  // namespace

TEST_CASE("a snapshot is accepted as Creating and becomes Ready") {
    SnapshotFixture f;
    auto sandbox = f.create();
    auto gate = f.hold();
    auto accepted = f.take(sandbox, "name");
    REQUIRE(accepted);
    CHECK(accepted->json.find("\"Creating\"") != std::string::npos);
    CHECK(accepted->json.find("snapshot_accepted") != std::string::npos);
    CHECK(f.store->snapshots().load()->front().snapshot.status.state == SnapshotState::creating);
    CHECK(f.remove(accepted->id).error().wire() == "SNAPSHOT::INVALID_STATE");
    CHECK(f.restore(accepted->id).error().wire() == "SNAPSHOT::NOT_READY");
    gate->open();
    f.settle(accepted->id);
    CHECK(f.state(accepted->id) == SnapshotState::ready);
    CHECK(f.status(accepted->id).reason == "snapshot_runtime_ready");
    auto row = f.store->snapshots().load()->front();
    CHECK(row.reference == "layer of " + accepted->id);
    CHECK(row.base_image == "host");
    CHECK(row.snapshot.name == "name");
}

TEST_CASE("a sandbox is made from a snapshot, also when the source is gone") {
    SnapshotFixture f;
    auto sandbox = f.create();
    auto snapshot = f.taken(sandbox);
    f.loop.run([&]() -> Awaitable<void> {
        auto removed = co_await f.life->remove(sandbox);
        CHECK(removed);
    });
    auto made = f.restore(snapshot);
    REQUIRE(made);
    const auto& spec = f.runtime.specs.back();
    CHECK(spec.snapshot->data == "layer of " + snapshot);
    CHECK(spec.image.empty());
    auto json = std::string(f.life->get(made->id).value());
    CHECK(json.find("\"snapshotId\":\"" + snapshot) != std::string::npos);
    CHECK(json.find("\"image\"") == std::string::npos);
    CHECK(f.restore("none").error().wire() == "SNAPSHOT::NOT_FOUND");
    f.restart();
    CHECK(f.life->index().find(made->id)->record.sandbox.snapshot_id == snapshot);
    CHECK(f.state(snapshot) == SnapshotState::ready);
}

TEST_CASE("a snapshot needs a running sandbox") {
    SnapshotFixture f;
    auto sandbox = f.create();
    f.loop.run([&]() -> Awaitable<void> {
        auto paused = co_await f.life->pause(sandbox);
        CHECK(paused);
    });
    CHECK(f.take(sandbox).error().wire() == "SNAPSHOT::INVALID_SOURCE_STATE");
    CHECK(f.life->snapshots().index().size() == 0);
}

TEST_CASE("a snapshot that fails says so and can be deleted") {
    SnapshotFixture f;
    auto sandbox = f.create();
    f.runtime.snapshot_error.emplace(ErrorCode::io, "disk");
    auto failed = f.taken(sandbox);
    CHECK(f.state(failed) == SnapshotState::failed);
    CHECK(f.status(failed).reason == "snapshot_runtime_failed");
    CHECK(f.status(failed).message == "disk");
    f.runtime.snapshot_error.emplace(ErrorCode::timeout, "slow");
    auto late = f.taken(sandbox);
    CHECK(f.status(late).reason == "snapshot_runtime_timeout");
    REQUIRE(f.remove(failed));
    CHECK(f.remove(failed).error().wire() == "SNAPSHOT::NOT_FOUND");
    CHECK(f.store->snapshots().load()->size() == 1);
}

TEST_CASE("at most two snapshots are taken at a time, the others wait in line") {
    SnapshotFixture f;
    auto gate = f.hold();
    std::vector<std::string> ids;
    for (int i = 0; i < 5; ++i)
        ids.push_back(f.take(f.create())->id);
    f.until([&] { return f.runtime.taking.size() == 2; });
    CHECK(f.life->snapshots().busy() == 5);
    gate->open();
    for (const auto& id : ids)
        f.settle(id);
    CHECK(f.runtime.taking == ids);
    f.until([&] { return f.life->snapshots().busy() == 0; });
}

TEST_CASE("removals and pauses asked for after a snapshot come after it; renewals do not wait") {
    SnapshotFixture f;
    auto sandbox = f.create();
    auto gate = f.hold();
    auto snapshot = f.take(sandbox)->id;
    bool removed = false;
    auto remove = [&]() -> Awaitable<void> {
        auto done = co_await f.life->remove(sandbox);
        CHECK(done);
        removed = true;
    };
    net::spawn(f.loop.executor(), remove(), "remove");
    f.loop.run([&]() -> Awaitable<void> {
        auto renewed = co_await f.life->renew(sandbox, now() + std::chrono::hours(1));
        CHECK(renewed);
    });
    CHECK_FALSE(removed);
    CHECK(f.runtime.destroyed.empty());
    gate->open();
    f.until([&] { return removed; });
    CHECK(f.state(snapshot) == SnapshotState::ready);
}

TEST_CASE("a snapshot in use stays Deleting; asked again it goes") {
    SnapshotFixture f;
    auto snapshot = f.taken(f.create());
    f.runtime.remove_snapshot_error.emplace(ErrorCode::conflict, "a container uses it");
    auto refused = f.remove(snapshot);
    CHECK(refused.error().wire() == "SNAPSHOT::DELETE_CONFLICT");
    CHECK(refused.error().code() == ErrorCode::conflict);
    CHECK(f.state(snapshot) == SnapshotState::deleting);
    CHECK(f.restore(snapshot).error().wire() == "SNAPSHOT::NOT_READY");
    f.runtime.remove_snapshot_error.emplace(ErrorCode::io, "disk");
    CHECK(f.remove(snapshot).error().code() == ErrorCode::internal);
    f.runtime.remove_snapshot_error.reset();
    REQUIRE(f.remove(snapshot));
    CHECK(f.runtime.snapshots.empty());
    CHECK(f.store->snapshots().load()->empty());
}

TEST_CASE("recovery: what the server's end cut short is settled") {
    SnapshotFixture f;
    auto sandbox = f.create();
    auto ready = f.taken(sandbox);
    auto cut_whole = f.taken(sandbox);
    auto cut_short = f.taken(sandbox);
    auto removing = f.taken(sandbox);
    auto rewrite = [&](const std::string& id, SnapshotState state) {
        auto record = f.life->snapshots().index().find(id)->record;
        record.snapshot.status.state = state;
        record.reference.clear();
        REQUIRE(f.store->snapshots().set_status(record));
    };
    rewrite(cut_whole, SnapshotState::creating);
    rewrite(cut_short, SnapshotState::creating);
    rewrite(removing, SnapshotState::deleting);
    f.runtime.snapshots.erase(cut_short);
    runtime::SnapshotReference orphan("orphan", "layer");
    orphan.owned = true;
    f.runtime.snapshots["orphan"] = orphan;
    f.runtime.snapshots["foreign"] = runtime::SnapshotReference("foreign", "layer");
    f.restart();
    CHECK(f.state(ready) == SnapshotState::ready);
    CHECK(f.status(cut_whole).reason == "snapshot_recovery_ready");
    CHECK(f.state(cut_whole) == SnapshotState::ready);
    CHECK(f.status(cut_short).reason == "snapshot_recovery_missing_image");
    f.until([&] { return !f.life->snapshots().index().find(removing); });
    f.until([&] { return !f.runtime.snapshots.contains("orphan"); });
    CHECK(f.runtime.snapshots.contains("foreign"));
    CHECK_FALSE(f.runtime.snapshots.contains(removing));
    REQUIRE(f.restore(cut_whole));
    // A backend of its own may finish later what the dead server began.
    f.runtime.able.outlives_requests = true;
    f.restart();
    f.runtime.snapshots[cut_short] = runtime::SnapshotReference(cut_short, "layer");
    f.runtime.snapshots["orphan"] = orphan;
    f.until([&] { return f.state(cut_short) == SnapshotState::ready; });
    f.until([&] { return !f.runtime.snapshots.contains("orphan"); });
    CHECK(f.runtime.snapshots.contains("foreign"));
    REQUIRE(f.restore(cut_short));
}

TEST_CASE("recovery: where work ends with its request nobody looks for what comes later") {
    SnapshotFixture f;
    f.restart();
    const int looked = f.runtime.snapshot_lists;
    f.loop.run(
        []() -> Awaitable<void> { co_await net::sleep_for(std::chrono::milliseconds(1200)); });
    CHECK(f.runtime.snapshot_lists == looked);
    f.runtime.able.outlives_requests = true;
    f.restart();
    f.until([&] { return f.runtime.snapshot_lists > looked + 1; });
}

TEST_CASE("snapshot plan: what could not be asked for fails, and comes back when it can") {
    store::SnapshotRecord row;
    row.snapshot.id = "one";
    row.snapshot.status = snapshot_accepted(now());
    auto unknown = plan_snapshots({row}, std::nullopt, now());
    REQUIRE(unknown.changed.size() == 1);
    CHECK(unknown.changed[0].snapshot.status.reason == "snapshot_recovery_inspect_failed");
    std::vector<runtime::SnapshotReference> there{runtime::SnapshotReference("one", "layer")};
    auto back = plan_snapshots(unknown.changed, there, now());
    REQUIRE(back.changed.size() == 1);
    CHECK(back.changed[0].snapshot.status.state == SnapshotState::ready);
    CHECK(back.changed[0].reference == "layer");
    // Gone behind our back, and there again.
    auto gone = plan_snapshots(back.changed, std::vector<runtime::SnapshotReference>(), now());
    REQUIRE(gone.changed.size() == 1);
    CHECK(gone.changed[0].snapshot.status.state == SnapshotState::failed);
    CHECK(plan_snapshots(gone.changed, there, now()).changed.size() == 1);
    // Failed for good, and Ready when nothing is known: left alone.
    row.snapshot.status = snapshot_failed(Error(ErrorCode::io, "disk"), now());
    CHECK(plan_snapshots({row}, there, now()).changed.empty());
    CHECK(plan_snapshots(back.changed, std::nullopt, now()).changed.empty());
}

TEST_CASE("snapshot list: newest first, filtered exactly, paged") {
    SnapshotIndex index;
    auto put = [&](const std::string& id, int second, const std::string& name,
                   SnapshotState state) {
        store::SnapshotRecord record;
        record.snapshot.id = id;
        record.snapshot.sandbox_id = "box-" + name;
        record.snapshot.name = name;
        record.snapshot.status.state = state;
        record.snapshot.created_at = Timestamp(std::chrono::seconds(second));
        record.tenant = id == "c" ? "other" : "mine";
        index.put(record);
    };
    put("a", 1, "x", SnapshotState::ready);
    put("b", 1, "y", SnapshotState::failed);
    put("c", 3, "x", SnapshotState::ready);
    put("d", 2, "x", SnapshotState::creating);
    auto ids = [&](const SnapshotQuery& query) {
        std::string found;
        std::string list = index.list(query);
        for (std::size_t at = 0; (at = list.find("{\"id\":\"", at)) != std::string::npos; ++at)
            found += list[at + 7];
        return found;
    };
    SnapshotQuery query;
    CHECK(ids(query) == "cdba");
    query.tenant = "mine";
    CHECK(ids(query) == "dba");
    query.name = "x";
    CHECK(ids(query) == "da");
    query.sandbox_id = "box-y";
    CHECK(ids(query).empty());
    query = SnapshotQuery();
    query.states = {SnapshotState::ready, SnapshotState::creating};
    CHECK(ids(query) == "cda");
    query.states = std::vector<SnapshotState>();
    CHECK(ids(query).empty());
    query = SnapshotQuery();
    query.page.size = 3;
    query.page.number = 2;
    CHECK(ids(query) == "a");
    CHECK(index.list(query).find("\"totalItems\":4,\"totalPages\":2,\"hasNextPage\":false") !=
          std::string::npos);
    query.page.number = INT64_MAX;
    CHECK(ids(query).empty());
}
