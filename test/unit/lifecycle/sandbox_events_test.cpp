#include "lifecycle/sandbox_events.hpp"

#include "unit/lifecycle/lifecycle_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using lifecycle::SandboxEvents;
using test_support::LifecycleFixture;

namespace {

std::vector<std::string> reasons(const std::vector<lifecycle::SandboxEvent>& events) {
    std::vector<std::string> all;
    for (const auto& event : events)
        all.push_back(event.reason);
    return all;
}

}  // namespace

TEST_CASE("events are what differs between two records") {
    SandboxEvents events;
    model::Sandbox before;
    before.status = {model::SandboxState::running, "CONTAINER_RUNNING", "", Timestamp()};
    events.add_changes(nullptr, before, now());
    events.add_changes(&before, before, now());
    REQUIRE(reasons(events.all()) == std::vector<std::string>{"CONTAINER_RUNNING"});
    model::Sandbox after = before;
    after.status.state = model::SandboxState::paused;
    after.status.reason = "";
    after.expires_at = now();
    after.metadata = model::StringMap{{"a", "b"}};
    events.add_changes(&before, after, now());
    REQUIRE(reasons(events.all()) == std::vector<std::string>{"CONTAINER_RUNNING", "Paused",
                                                              "EXPIRATION_CHANGED",
                                                              "METADATA_CHANGED"});
}

TEST_CASE("only the last events are kept") {
    SandboxEvents events;
    for (int i = 0; i < 40; ++i)
        events.add({now(), std::to_string(i), ""});
    REQUIRE(events.all().size() == SandboxEvents::kKept);
    REQUIRE(events.all().front().reason == "8");
    REQUIRE(events.all().back().reason == "39");
}

TEST_CASE("a sandbox's events follow its life and begin with its status after a restart") {
    LifecycleFixture f;
    f.start();
    std::string id = f.create();
    f.runtime.exits[id] = {};
    f.runtime.listener(id, {});
    f.until([&] { return f.status(id).state == model::SandboxState::terminated; });
    REQUIRE(reasons(f.life->events(id)) == std::vector<std::string>{"CONTAINER_STARTING",
                                                                    "CONTAINER_RUNNING",
                                                                    "CONTAINER_EXITED"});
    f.restart();
    REQUIRE(reasons(f.life->events(id)) == std::vector<std::string>{"CONTAINER_EXITED"});
    REQUIRE(f.life->events("nobody").empty());
}
