#include "json/document.hpp"
#include "lifecycle/host/expiry_queue.hpp"
#include "lifecycle/host/keyed_mutex.hpp"
#include "lifecycle/host/recovery_plan.hpp"
#include "lifecycle/idempotency.hpp"
#include "lifecycle/sandbox_index.hpp"
#include "lifecycle/transition.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using std::chrono::seconds;

namespace {

const Timestamp kNow = *parse_rfc3339("2026-01-01T00:00:00Z");

store::SandboxRecord row(const std::string& id, model::SandboxState state, int age = 0) {
    store::SandboxRecord record;
    record.sandbox.id = id;
    record.sandbox.created_at = kNow - seconds(age);
    record.sandbox.status = model::SandboxStatus(state, "", "", record.sandbox.created_at);
    return record;
}

runtime::Observed object(const std::string& id) {
    runtime::Observed observed;
    observed.id = id;
    observed.endpoints = runtime::AgentAddress("127.0.0.1", 5);
    return observed;
}

/// "id id |total pages next" of a list.
std::string summary(const std::string& list) {
    auto parsed = json::parse(list);
    REQUIRE(parsed);
    std::string text;
    for (const auto& item : parsed->at("items").as_array()) {
        text += std::string(item.at("id").as_string()) + " ";
    }
    const auto& pages = parsed->at("pagination");
    text += "|" + std::to_string(pages.at("totalItems").as_int64()) + " " +
            std::to_string(pages.at("totalPages").as_int64()) + " " +
            (pages.at("hasNextPage").as_bool() ? "more" : "end");
    return text;
}

}  // namespace

TEST_CASE("expiry: due ones come out earliest first, moved ones when they are due") {
    ExpiryQueue queue;
    queue.set("b", kNow + seconds(2));
    queue.set("a", kNow + seconds(1));
    queue.set("c", kNow + seconds(3));
    REQUIRE(*queue.next() == kNow + seconds(1));
    queue.set("a", kNow + seconds(9));
    queue.erase("c");
    queue.erase("unknown");
    REQUIRE(queue.take_due(kNow).empty());
    REQUIRE(queue.take_due(kNow + seconds(2)) == std::vector<std::string>{"b"});
    REQUIRE(queue.take_due(kNow + seconds(10)) == std::vector<std::string>{"a"});
    REQUIRE_FALSE(queue.next());
}

TEST_CASE("an exit becomes Terminated or Failed with its reason") {
    runtime::Exit exit;
    REQUIRE(exited(exit, kNow).state == model::SandboxState::terminated);
    REQUIRE(exited(exit, kNow).reason == "CONTAINER_EXITED");
    REQUIRE(exited(exit, kNow).last_transition_at == kNow);
    exit.code = 3;
    exit.at = kNow + seconds(1);
    REQUIRE(exited(exit, kNow).state == model::SandboxState::failed);
    REQUIRE(exited(exit, kNow).reason == "CONTAINER_EXITED_ERROR");
    REQUIRE(exited(exit, kNow).message == "Sandbox exited with code 3.");
    REQUIRE(exited(exit, kNow).last_transition_at == exit.at);
    exit.code = -1;
    exit.signal = 9;
    REQUIRE(exited(exit, kNow).message == "Sandbox was killed by signal 9.");
    exit.code = 0;
    exit.signal = 0;
    exit.reason = "OOM_KILLED";
    exit.message = "out of memory";
    REQUIRE(exited(exit, kNow).state == model::SandboxState::failed);
    REQUIRE(exited(exit, kNow).reason == "OOM_KILLED");
    REQUIRE(exited(exit, kNow).message == "out of memory");
}

TEST_CASE("recovery: rows and objects are matched") {
    using enum model::SandboxState;
    runtime::Observed dead = object("died");
    dead.exit.emplace();
    dead.exit->code = 1;
    auto plan = plan_recovery(
        {row("lives", running), row("died", running), row("lost", running), row("half", pending),
         row("leaving", stopping), row("done", terminated), row("back", failed)},
        {object("lives"), dead, object("half"), object("orphan"), object("back")}, kNow);
    REQUIRE(plan.adopt.size() == 2);
    REQUIRE(plan.adopt[0].id == "lives");
    REQUIRE(plan.adopt[1].id == "back");
    REQUIRE(plan.ended.size() == 2);
    REQUIRE(plan.ended[0].first == "died");
    REQUIRE(plan.ended[0].second.reason == "CONTAINER_EXITED_ERROR");
    REQUIRE(plan.ended[1].first == "lost");
    REQUIRE(plan.ended[1].second.reason == "SANDBOX_LOST");
    REQUIRE(plan.remove == std::vector<std::string>{"half", "leaving"});
    REQUIRE(plan.orphans == std::vector<std::string>{"orphan"});
}

TEST_CASE("recovery: after a restart of the host sandboxes are Terminated, with that reason") {
    using enum model::SandboxState;
    runtime::Observed noted = object("noted");
    noted.exit.emplace();
    noted.exit->code = -1;
    noted.exit->reason = "HOST_RESTARTED";
    auto plan = plan_recovery({row("noted", running), row("unknown", paused), row("old", failed)},
                              {noted}, kNow, true);
    REQUIRE(plan.ended.size() == 2);
    for (const auto& [id, status] : plan.ended) {
        REQUIRE(status.state == terminated);
        REQUIRE(status.reason == "HOST_RESTARTED");
        REQUIRE_FALSE(status.message.empty());
    }
}

TEST_CASE("index: lists are newest first, in pages") {
    using enum model::SandboxState;
    SandboxIndex index;
    for (int i = 0; i < 5; ++i)
        index.put(row("s" + std::to_string(i), running, i));
    ListQuery query;
    REQUIRE(summary(index.list(query)) == "s0 s1 s2 s3 s4 |5 1 end");
    query.page_size = 2;
    REQUIRE(summary(index.list(query)) == "s0 s1 |5 3 more");
    query.page = 3;
    REQUIRE(summary(index.list(query)) == "s4 |5 3 end");
    query.page = 4;
    REQUIRE(summary(index.list(query)) == "|5 3 end");
    query.page = INT64_MAX;
    REQUIRE(summary(index.list(query)) == "|5 3 end");
    REQUIRE(summary(SandboxIndex().list(ListQuery())) == "|0 0 end");
}

TEST_CASE("index: filters by state and metadata") {
    using enum model::SandboxState;
    SandboxIndex index;
    auto tagged = row("tagged", running, 1);
    tagged.sandbox.metadata = model::StringMap{{"a", "1"}, {"b", "2"}};
    index.put(tagged);
    index.put(row("plain", running, 2));
    index.put(row("dead", failed, 3));
    ListQuery query;
    query.states.emplace({running});
    REQUIRE(summary(index.list(query)) == "tagged plain |2 1 end");
    query.states->push_back(failed);
    query.page_size = 1;
    query.page = 2;
    REQUIRE(summary(index.list(query)) == "plain |3 3 more");
    query = ListQuery();
    query.metadata = {{"b", "2"}};
    REQUIRE(summary(index.list(query)) == "tagged |1 1 end");
    query.metadata = {{"b", "3"}};
    REQUIRE(summary(index.list(query)) == "|0 0 end");
    query = ListQuery();
    query.states.emplace();
    REQUIRE(summary(index.list(query)) == "|0 0 end");
}

TEST_CASE("index: a change is seen in the rendering, an erased one is gone") {
    using enum model::SandboxState;
    SandboxIndex index;
    index.put(row("a", running));
    index.update("a", [](store::SandboxRecord& r) { r.sandbox.status.state = failed; });
    REQUIRE(index.find("a")->json.find("Failed") != std::string::npos);
    REQUIRE(index.counts()[static_cast<std::size_t>(failed)] == 1);
    index.put(row("a", terminated));
    REQUIRE(index.size() == 1);
    index.erase("a");
    REQUIRE_FALSE(index.find("a"));
    REQUIRE(summary(index.list(ListQuery())) == "|0 0 end");
}

TEST_CASE("idempotency keys are short visible text, bound to their body") {
    REQUIRE_FALSE(make_idempotency_key("", "x"));
    REQUIRE_FALSE(make_idempotency_key("a b", "x"));
    REQUIRE_FALSE(make_idempotency_key(std::string(256, 'a'), "x"));
    auto key = make_idempotency_key("k", "");
    REQUIRE(key);
    REQUIRE(key->body_digest == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("idempotency: a key answers for its sandbox for a day") {
    test_support::Loop loop;
    KeyTable table(loop.executor());
    IdempotencyKey key("k", "digest");
    REQUIRE(table.decide(key, kNow).sandbox_id.empty());
    table.begin(key);
    REQUIRE(table.decide(key, kNow).wait);
    REQUIRE(table.decide(IdempotencyKey("k", "other"), kNow).error->code() == ErrorCode::conflict);
    table.finish(key, store::KeyRecord("k", "digest", "sandbox", kNow));
    REQUIRE(table.decide(key, kNow).sandbox_id == "sandbox");
    REQUIRE(table.decide(IdempotencyKey("k", "other"), kNow).error->wire() ==
            "IDEMPOTENCY_KEY_REUSED");
    auto later = table.decide(key, kNow + kKeyLifetime);
    REQUIRE(later.sandbox_id.empty());
    REQUIRE_FALSE(later.error);
    REQUIRE(table.forget_before(kNow + seconds(1)));
    REQUIRE(table.size() == 0);
}

TEST_CASE("idempotency: a failed create frees its key") {
    test_support::Loop loop;
    KeyTable table(loop.executor());
    IdempotencyKey key("k", "digest");
    table.begin(key);
    table.finish(key, std::nullopt);
    auto verdict = table.decide(key, kNow);
    REQUIRE(verdict.sandbox_id.empty());
    REQUIRE_FALSE(verdict.wait);
}

TEST_CASE("turns on one key come in order, other keys do not wait") {
    test_support::Loop loop;
    KeyedMutex mutex(loop.executor());
    std::string order;
    auto step = [&](std::string key, std::string name) -> Awaitable<void> {
        auto guard = co_await mutex.lock(key);
        co_await net::sleep_for(std::chrono::milliseconds(1));
        order += name;
    };
    loop.run([&]() -> Awaitable<void> {
        auto held = co_await mutex.lock("a");
        net::spawn(loop.executor(), step("a", "1"), "one");
        net::spawn(loop.executor(), step("a", "2"), "two");
        net::spawn(loop.executor(), step("b", "x"), "other");
        while (order.empty())
            co_await net::sleep_for(std::chrono::milliseconds(1));
    });
    REQUIRE(order == "x");
    loop.run([&]() -> Awaitable<void> {
        while (order.size() < 3)
            co_await net::sleep_for(std::chrono::milliseconds(1));
    });
    REQUIRE(order == "x12");
    REQUIRE(mutex.size() == 0);
}
