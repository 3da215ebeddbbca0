#include "lifecycle/transition.hpp"
#include "unit/lifecycle/lifecycle_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using model::SandboxState;
using test_support::LifecycleFixture;

namespace {

struct PauseFixture : LifecycleFixture {
    PauseFixture() {
        runtime.able.pause = true;
        start();
    }
    Status pause(const std::string& id) {
        Status done;
        loop.run([&]() -> Awaitable<void> { done = co_await life->pause(id); });
        return done;
    }
    Status resume(const std::string& id) {
        Status done;
        loop.run([&]() -> Awaitable<void> { done = co_await life->resume(id); });
        return done;
    }
    [[nodiscard]] SandboxState stored(const std::string& id) const {
        for (const auto& row : store->load_sandboxes().value()) {
            if (row.sandbox.id == id) return row.sandbox.status.state;
        }
        return SandboxState::failed;
    }
};

}  // namespace

TEST_CASE("pause and resume: state, row and runtime go together") {
    PauseFixture f;
    auto id = f.create();
    REQUIRE(f.pause(id));
    CHECK(f.status(id).state == SandboxState::paused);
    CHECK(f.stored(id) == SandboxState::paused);
    CHECK(f.runtime.paused.contains(id));
    REQUIRE(f.resume(id));
    CHECK(f.status(id).state == SandboxState::running);
    CHECK(f.stored(id) == SandboxState::running);
    CHECK(f.runtime.paused.empty());
}

TEST_CASE("pause and resume in the wrong state, of the unknown, without the capability") {
    PauseFixture f;
    auto id = f.create();
    CHECK(f.resume(id).error().wire() == "NATIVE::SANDBOX_NOT_PAUSED");
    REQUIRE(f.pause(id));
    auto again = f.pause(id);
    CHECK(again.error().wire() == "NATIVE::SANDBOX_NOT_RUNNING");
    CHECK(again.error().code() == ErrorCode::conflict);
    CHECK(f.pause("none").error().wire() == "NATIVE::SANDBOX_NOT_FOUND");
    f.runtime.able.pause = false;
    CHECK(f.resume(id).error().code() == ErrorCode::unsupported);
    CHECK(f.status(id).state == SandboxState::paused);
}

TEST_CASE("a pause that fails leaves the sandbox running, a resume that fails leaves it paused") {
    PauseFixture f;
    auto id = f.create();
    f.runtime.pause_error.emplace(ErrorCode::io, "freezer");
    auto failed = f.pause(id);
    CHECK(failed.error().wire() == "NATIVE::SANDBOX_PAUSE_FAILED");
    CHECK(failed.error().code() == ErrorCode::internal);
    CHECK(f.status(id).state == SandboxState::running);
    CHECK(f.stored(id) == SandboxState::running);
    f.runtime.pause_error.reset();
    REQUIRE(f.pause(id));
    f.runtime.pause_error.emplace(ErrorCode::io, "freezer");
    CHECK(f.resume(id).error().wire() == "NATIVE::SANDBOX_RESUME_FAILED");
    CHECK(f.status(id).state == SandboxState::paused);
}

TEST_CASE("a paused sandbox expires, is renewed, patched and deleted like a running one") {
    PauseFixture f;
    auto id = f.create();
    REQUIRE(f.pause(id));
    f.loop.run([&]() -> Awaitable<void> {
        auto renewed = co_await f.life->renew(id, now() + std::chrono::hours(1));
        CHECK(renewed);
        model::MetadataPatch patch{{"a", "b"}};
        auto patched = co_await f.life->patch_metadata(id, patch);
        CHECK(patched);
        renewed = co_await f.life->renew(id, now() + std::chrono::milliseconds(20));
        CHECK(renewed);
    });
    f.until([&] { return f.life->index().size() == 0; });
    auto other = f.create();
    REQUIRE(f.pause(other));
    f.loop.run([&]() -> Awaitable<void> {
        auto removed = co_await f.life->remove(other);
        CHECK(removed);
    });
    CHECK(f.runtime.objects.empty());
}

TEST_CASE("an exit of a paused sandbox is recorded") {
    PauseFixture f;
    auto id = f.create();
    REQUIRE(f.pause(id));
    f.runtime.listener(id, runtime::Exit());
    f.until([&] { return f.status(id).state == SandboxState::terminated; });
    CHECK(f.resume(id).error().wire() == "NATIVE::SANDBOX_NOT_PAUSED");
}

TEST_CASE("what somebody else did by hand is taken over, old news is not") {
    PauseFixture f;
    auto id = f.create();
    f.runtime.paused.insert(id);
    f.runtime.change_listener(id, runtime::Change::paused);
    f.until([&] { return f.status(id).state == SandboxState::paused; });
    CHECK(f.stored(id) == SandboxState::paused);
    REQUIRE(f.resume(id));
    // Comes late: the runtime says that it runs.
    f.runtime.change_listener(id, runtime::Change::paused);
    auto other = f.create();
    f.runtime.objects.erase(other);
    f.runtime.change_listener(other, runtime::Change::removed);
    f.until([&] { return f.life->index().find(other) == nullptr; });
    CHECK(f.status(id).state == SandboxState::running);
    CHECK(f.store->load_sandboxes()->size() == 1);
}

TEST_CASE("recovery: the runtime says whether a sandbox is paused") {
    PauseFixture f;
    auto cut_pausing = f.create();
    auto cut_resuming = f.create();
    auto by_hand = f.create();
    auto kept = f.create();
    REQUIRE(f.pause(kept));
    REQUIRE(f.store->set_status(cut_pausing, pausing(now())));
    REQUIRE(f.store->set_status(cut_resuming, resuming(now())));
    f.runtime.paused.insert(cut_pausing);
    f.runtime.paused.insert(by_hand);
    f.restart();
    CHECK(f.status(cut_pausing).state == SandboxState::paused);
    CHECK(f.status(cut_resuming).state == SandboxState::running);
    CHECK(f.status(by_hand).state == SandboxState::paused);
    CHECK(f.status(kept).state == SandboxState::paused);
    CHECK(f.stored(cut_pausing) == SandboxState::paused);
    CHECK(f.stored(cut_resuming) == SandboxState::running);
}

TEST_CASE("recovery: what another server left to us gets a row, unless it is due") {
    PauseFixture f;
    auto leave = [&](const std::string& id, std::optional<Timestamp> expires_at) {
        f.runtime.objects[id] = runtime::AgentAddress("127.0.0.1", 40000);
        runtime::Adoption adoption;
        adoption.sandbox.image_uri = "python:3";
        adoption.sandbox.entrypoint = {"sleep"};
        adoption.sandbox.metadata = model::StringMap{{"team", "a"}};
        adoption.sandbox.expires_at = expires_at;
        adoption.renew_seconds = 300;
        f.runtime.adoptions[id] = adoption;
    };
    leave("lives", now() + std::chrono::hours(1));
    leave("paused", std::nullopt);
    leave("ended", std::nullopt);
    leave("due", now() - std::chrono::seconds(1));
    f.runtime.objects["orphan"] = runtime::AgentAddress("127.0.0.1", 40001);
    f.runtime.paused.insert("paused");
    f.runtime.exits["ended"].code = 3;
    f.restart();
    f.until([&] { return f.runtime.objects.size() == 3; });
    CHECK(f.status("lives").state == SandboxState::running);
    CHECK(f.status("paused").state == SandboxState::paused);
    CHECK(f.status("ended").state == SandboxState::failed);
    CHECK(f.store->load_sandboxes()->size() == 3);
    auto agent = f.life->agent("lives");
    CHECK(agent->endpoints.agent.port == 40000);
    CHECK(agent->renew_seconds == 300);
    f.restart();
    CHECK(f.life->index().size() == 3);
}
