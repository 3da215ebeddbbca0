#pragma once

#include "lifecycle/host/host_lifecycle.hpp"
#include "model/create_request.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"
#include "support/scratch_directory.hpp"
#include "unit/lifecycle/fake_runtime.hpp"

#include <memory>
#include <string>

namespace opensandbox::test_support {

/// A lifecycle over a fake runtime and a real store in a scratch directory.
struct LifecycleFixture {
    LifecycleFixture() {
        rules.arch = "amd64";
        open();
    }
    ~LifecycleFixture() { pool.join(); }

    void open() {
        auto opened = store::SandboxStore::open(scratch.path / "test.db");
        REQUIRE(opened.has_value());
        store = std::move(opened.value());
    }

    /// A new server on the same store and runtime, as after a crash.
    void restart() {
        life.reset();
        store.reset();
        open();
        start();
    }

    void start() {
        rules.capabilities = runtime.able;
        life = std::make_shared<lifecycle::HostLifecycle>(loop.executor(), pool, *store, runtime,
                                                          rules);
        loop.run([this]() -> Awaitable<void> {
            auto started = co_await life->start();
            REQUIRE(started);
        });
    }

    static model::CreateRequest request(std::optional<std::int64_t> timeout = 600) {
        model::CreateRequest made;
        made.image = "host";
        made.entrypoint = {"tail", "-f", "/dev/null"};
        made.timeout_seconds = timeout;
        return made;
    }

    /// Creates one and returns its id.
    std::string create(model::CreateRequest wanted = request()) {
        std::string id;
        loop.run([&]() -> Awaitable<void> {
            auto made = co_await life->create(wanted, std::nullopt, {});
            REQUIRE(made.has_value());
            id = made->id;
        });
        return id;
    }

    /// Runs the loop until `condition` holds.
    void until(std::function<bool()> condition) {
        loop.run([&]() -> Awaitable<void> {
            while (!condition())
                co_await net::sleep_for(std::chrono::milliseconds(1));
        });
    }

    [[nodiscard]] model::SandboxStatus status(const std::string& id) const {
        const auto* entry = life->index().find(id);
        REQUIRE(entry);
        return entry->record.sandbox.status;
    }

    Loop loop;
    asio::thread_pool pool{2};
    ScratchDirectory scratch;
    FakeRuntime runtime;
    lifecycle::AdmissionRules rules;
    std::unique_ptr<store::SandboxStore> store;
    std::shared_ptr<lifecycle::HostLifecycle> life;
};

}  // namespace opensandbox::test_support
