#pragma once

#include "net/latch.hpp"
#include "runtime/runtime.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::test_support {

/// A runtime that only remembers; tests tell it when to fail, to wait, and what "exists".
class FakeRuntime : public runtime::Runtime {
  public:
    [[nodiscard]] std::string_view error_prefix() const override { return "NATIVE"; }

    Awaitable<Status> start() override {
        started = true;
        co_return Status();
    }

    Awaitable<Result<runtime::Endpoints>> create(runtime::SandboxSpec spec) override {
        specs.push_back(spec);
        if (hold) {
            auto gate = hold;
            co_await gate->wait();
        }
        if (create_error) co_return *create_error;
        if (specs.size() > creates_until_error) co_return Error(ErrorCode::io, "no more slots");
        runtime::AgentAddress address = agent;
        objects[spec.id] = address;
        if (exit_while_creating && listener) listener(spec.id, *exit_while_creating);
        co_return address;
    }

    [[nodiscard]] std::string image_digest(const std::string&) const override { return digest; }
    [[nodiscard]] std::string interception_mode(const std::string&) const override {
        return interception;
    }

    Awaitable<Status> destroy(std::string id) override {
        destroyed.push_back(id);
        if (hold_destroy) {
            auto gate = hold_destroy;
            co_await gate->wait();
        }
        if (destroy_error) co_return *destroy_error;
        objects.erase(id);
        co_return Status();
    }

    Awaitable<Result<std::vector<runtime::Observed>>> list() override {
        std::vector<runtime::Observed> all;
        for (const auto& [id, address] : objects) {
            runtime::Observed observed;
            observed.id = id;
            observed.endpoints = address;
            observed.paused = paused.contains(id);
            if (auto exit = exits.find(id); exit != exits.end()) observed.exit = exit->second;
            if (auto by = adoptions.find(id); by != adoptions.end()) observed.adoption = by->second;
            all.push_back(std::move(observed));
        }
        co_return all;
    }

    void on_exit(std::function<void(const std::string&, const runtime::Exit&)> l) override {
        listener = std::move(l);
    }
    void on_change(std::function<void(const std::string&, runtime::Change)> l) override {
        change_listener = std::move(l);
    }
    [[nodiscard]] runtime::Capabilities capabilities() const override { return able; }

    Awaitable<Status> pause(std::string id) override {
        if (!able.pause) co_return co_await Runtime::pause(id);
        if (pause_error) co_return *pause_error;
        paused.insert(id);
        co_return Status();
    }
    Awaitable<Status> resume(std::string id) override {
        if (!able.pause) co_return co_await Runtime::resume(id);
        if (pause_error) co_return *pause_error;
        paused.erase(id);
        co_return Status();
    }
    Awaitable<Result<runtime::SnapshotReference>> snapshot(std::string /*sandbox_id*/,
                                                           std::string snapshot_id) override {
        taking.push_back(snapshot_id);
        if (hold_snapshot) {
            auto gate = hold_snapshot;
            co_await gate->wait();
        }
        if (snapshot_error) co_return *snapshot_error;
        runtime::SnapshotReference made(snapshot_id, "layer of " + snapshot_id);
        made.owned = true;
        snapshots[snapshot_id] = made;
        co_return made;
    }
    Awaitable<Status> remove_snapshot(runtime::SnapshotReference snapshot) override {
        if (remove_snapshot_error) co_return *remove_snapshot_error;
        snapshots.erase(snapshot.id);
        bases.erase(snapshot.id);
        co_return Status();
    }
    Awaitable<Result<std::vector<runtime::SnapshotReference>>> list_snapshots() override {
        ++snapshot_lists;
        if (snapshot_error) co_return *snapshot_error;
        std::vector<runtime::SnapshotReference> all;
        for (const auto& [id, snapshot] : snapshots)
            all.push_back(snapshot);
        co_return all;
    }

    Awaitable<Result<runtime::SnapshotContent>> open_snapshot(
        runtime::SnapshotReference snapshot) override {
        if (!able.snapshot_content) co_return co_await Runtime::open_snapshot(snapshot);
        if (snapshot_error) co_return *snapshot_error;
        co_return content;
    }

    Awaitable<Result<runtime::SnapshotReference>> fork(std::string sandbox_id,
                                                       std::string fork_id) override {
        if (!able.forks) co_return co_await Runtime::fork(sandbox_id, fork_id);
        if (hold_snapshot) {
            auto gate = hold_snapshot;
            co_await gate->wait();
        }
        if (snapshot_error) co_return *snapshot_error;
        forked.push_back(sandbox_id);
        bases.insert(fork_id);
        co_return runtime::SnapshotReference(fork_id, "base " + fork_id);
    }

    [[nodiscard]] runtime::Figures figures() const override {
        runtime::Figures figures;
        figures.slots_ready = 3;
        figures.sandboxes = objects.size();
        return figures;
    }
    Awaitable<Result<std::string>> logs(std::string /*id*/, runtime::LogQuery query) override {
        log_query = query;
        if (diagnostics_error) co_return *diagnostics_error;
        co_return log_text;
    }
    Awaitable<Result<runtime::Inspection>> inspect(std::string id) override {
        if (diagnostics_error) co_return *diagnostics_error;
        runtime::Inspection shown = inspection;
        shown.object_id = id;
        shown.paused = paused.contains(id);
        shown.status = "running";
        co_return shown;
    }
    Awaitable<void> stop() override { co_return; }

    bool started = false;
    runtime::AgentAddress agent{"127.0.0.1", 1};
    std::vector<runtime::SandboxSpec> specs;
    std::vector<std::string> destroyed;
    std::map<std::string, runtime::AgentAddress> objects;
    std::map<std::string, runtime::Exit> exits;
    std::string digest;  ///< of every image
    std::string interception;
    std::optional<Error> create_error;
    std::optional<Error> destroy_error;
    std::optional<runtime::Exit> exit_while_creating;
    runtime::Capabilities able;
    std::set<std::string> paused;
    std::map<std::string, runtime::Adoption> adoptions;
    std::map<std::string, runtime::SnapshotReference> snapshots;
    std::vector<std::string> taking;
    runtime::SnapshotContent content;  ///< of every snapshot
    std::vector<std::string> forked;   ///< sandboxes
    std::set<std::string> bases;       ///< of copies, not let go of
    std::size_t creates_until_error = SIZE_MAX;
    std::optional<Error> pause_error;
    std::optional<Error> snapshot_error;
    int snapshot_lists = 0;
    std::optional<Error> remove_snapshot_error;
    std::shared_ptr<net::Latch> hold_snapshot;
    std::function<void(const std::string&, runtime::Change)> change_listener;
    std::string log_text;
    runtime::LogQuery log_query;  ///< the last one asked
    runtime::Inspection inspection;
    std::optional<Error> diagnostics_error;
    std::shared_ptr<net::Latch> hold;
    std::shared_ptr<net::Latch> hold_destroy;
    std::function<void(const std::string&, const runtime::Exit&)> listener;
};

}  // namespace opensandbox::test_support
