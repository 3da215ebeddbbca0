#include "lifecycle/host/fork_plan.hpp"
#include "unit/lifecycle/lifecycle_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using model::SandboxState;
using test_support::LifecycleFixture;

namespace {

model::ForkRequest copies(std::int64_t count) {
    model::ForkRequest request;
    request.count = count;
    return request;
}

AdmissionRules rules() {
    AdmissionRules rules;
    rules.arch = "amd64";
    rules.capabilities.snapshots = true;
    return rules;
}

store::SandboxRecord a_source() {
    store::SandboxRecord source;
    source.sandbox.id = "0b1c7a52-54c3-4b8e-9a25-5d8e4e1b7f10";
    source.sandbox.image_uri = "python:3.12";
    source.sandbox.metadata = model::StringMap{{"team", "blue"}, {"kind", "agent"}};
    source.sandbox.extensions = {{"opensandbox.extensions.note", "x"}};
    source.sandbox.entrypoint = {"sleep", "infinity"};
    source.sandbox.expires_at = now() + std::chrono::hours(1);
    source.base_image = "python:3.12";
    source.tenant = "acme";
    source.cpu_millicores = 1500;
    source.memory_bytes = 512 << 20;
    source.renew_seconds = 600;
    return source;
}

std::string value_of(const model::StringMap& map, std::string_view name) {
    auto found = std::ranges::find(map, name, [](const auto& item) { return item.first; });
    return found == map.end() ? "absent" : found->second;
}

struct ForkFixture : LifecycleFixture {
    ForkFixture() {
        runtime.able.snapshots = true;
        runtime.able.forks = true;
        runtime.able.pause = true;
        start();
    }
    using Forked = Result<std::vector<std::string>>;
    Forked fork(const std::string& id, model::ForkRequest request,
                const Requester& requester = {}) {
        Forked forked = Error();
        loop.run(
            [&]() -> Awaitable<void> { forked = co_await life->fork(id, request, requester); });
        return forked;
    }
    [[nodiscard]] std::size_t rows() const { return store->load_sandboxes()->size(); }
};

}  // namespace

TEST_CASE("a copy is as its source is, but for its id") {
    const auto source = a_source();
    auto planned = plan_fork(source, copies(3), rules(), "fork", now());
    REQUIRE(planned);
    REQUIRE(planned->size() == 3);
    std::set<std::string> ids, tokens;
    for (const Admitted& child : *planned) {
        ids.insert(child.record.sandbox.id);
        tokens.insert(child.spec.agent_token);
        CHECK(child.spec.id == child.record.sandbox.id);
        CHECK(child.spec.snapshot->id == "fork");
        CHECK(child.record.sandbox.image_uri == "python:3.12");
        CHECK(child.record.sandbox.snapshot_id.empty());
        CHECK(child.record.base_image == "python:3.12");
        CHECK(child.record.tenant == "acme");
        CHECK(child.record.sandbox.metadata == source.sandbox.metadata);
        CHECK(child.spec.entrypoint == source.sandbox.entrypoint);
        CHECK(child.record.sandbox.expires_at == source.sandbox.expires_at);
        CHECK(child.spec.expires_at == source.sandbox.expires_at);
        CHECK(child.record.cpu_millicores == 1500);
        CHECK(child.record.memory_bytes == 512 << 20);
        CHECK(child.record.renew_seconds == 600);
        const auto& extensions = child.record.sandbox.extensions;
        CHECK(value_of(extensions, "opensandbox.extensions.note") == "x");
        CHECK(value_of(extensions, kForkedFrom) == source.sandbox.id);
    }
    CHECK(ids.size() == 3);
    CHECK(tokens.size() == 3);
    CHECK_FALSE(ids.contains(source.sandbox.id));
}

TEST_CASE("a fork request changes what it names") {
    auto source = a_source();
    source.sandbox.extensions.emplace_back(kForkedFrom, "an earlier one");
    source.sandbox.snapshot_id = "snapshot";
    source.sandbox.image_uri.clear();
    model::ForkRequest request = copies(1);
    request.metadata = {{"kind", "copy"}, {"extra", "1"}};
    request.env = {{"A", "b"}};
    request.entrypoint = {"python3"};
    request.life = model::ForkLife::timeout;
    request.timeout_seconds = 60;
    const Timestamp at = now();
    auto planned = plan_fork(source, request, rules(), "fork", at);
    REQUIRE(planned);
    const Admitted& child = planned->front();
    const auto& metadata = *child.record.sandbox.metadata;
    CHECK(value_of(metadata, "team") == "blue");
    CHECK(value_of(metadata, "kind") == "copy");
    CHECK(value_of(metadata, "extra") == "1");
    CHECK(value_of(child.spec.env, "A") == "b");
    CHECK(child.spec.entrypoint == std::vector<std::string>{"python3"});
    CHECK(child.record.sandbox.expires_at == at + std::chrono::seconds(60));
    CHECK(child.record.sandbox.snapshot_id == "snapshot");
    CHECK(value_of(child.record.sandbox.extensions, kForkedFrom) == source.sandbox.id);
    request.life = model::ForkLife::unlimited;
    planned = plan_fork(source, request, rules(), "fork", at);
    REQUIRE(planned);
    CHECK_FALSE(planned->front().record.sandbox.expires_at);
}

TEST_CASE("a fork request keeps the rules of create") {
    auto limited = rules();
    limited.max_timeout_seconds = 100;
    model::ForkRequest request = copies(1);
    request.life = model::ForkLife::timeout;
    request.timeout_seconds = 101;
    CHECK_FALSE(plan_fork(a_source(), request, limited, "fork", now()));
    request = copies(1);
    request.metadata = {{"opensandbox.io/x", "y"}};
    auto refused = plan_fork(a_source(), request, rules(), "fork", now());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().wire() == "SANDBOX::INVALID_METADATA_LABEL");
    request = copies(1);
    request.env = {{"A=B", "x"}};
    CHECK_FALSE(plan_fork(a_source(), request, rules(), "fork", now()));
}

TEST_CASE("the body of a fork") {
    const auto parsed = [](std::string_view body) {
        auto result = model::parse_fork_request(body);
        INFO(body);
        REQUIRE(std::holds_alternative<model::ForkRequest>(result));
        return std::get<model::ForkRequest>(result);
    };
    for (const char* body : {"", " \n", "null", "{}", R"({"count":null})"}) {
        CHECK(parsed(body).count == 1);
        CHECK(parsed(body).life == model::ForkLife::as_source);
    }
    auto request = parsed(R"({"count":100,"timeout":60,"metadata":{"a":"b"},"env":{"A":"B"},
                              "entrypoint":["sh -c 'exit 1'"]})");
    CHECK(request.count == 100);
    CHECK(request.life == model::ForkLife::timeout);
    CHECK(request.timeout_seconds == 60);
    CHECK(request.entrypoint == std::vector<std::string>{"sh", "-c", "exit 1"});
    CHECK(parsed(R"({"timeout":null})").life == model::ForkLife::unlimited);
    for (const char* body : {"[]", "{", R"({"count":0})", R"({"count":101})", R"({"timeout":59})",
                             R"({"entrypoint":[]})", R"({"metadata":{"a":1}})", R"({"env":[]})"}) {
        INFO(body);
        CHECK(std::holds_alternative<model::FieldErrors>(model::parse_fork_request(body)));
    }
}

TEST_CASE("a fork makes all copies, and lets go of what they stand on") {
    ForkFixture f;
    const std::string source = f.create();
    auto forked = f.fork(source, copies(5));
    REQUIRE(forked);
    CHECK(forked->size() == 5);
    CHECK(f.runtime.forked == std::vector<std::string>{source});
    CHECK(f.runtime.bases.empty());
    CHECK(f.runtime.objects.size() == 6);
    CHECK(f.rows() == 6);
    CHECK(f.life->index().size() == 6);
    for (std::size_t i = 1; i < f.runtime.specs.size(); ++i) {
        CHECK(f.runtime.specs[i].snapshot->data == "base " + f.runtime.specs[i].snapshot->id);
        CHECK(f.status(f.runtime.specs[i].id).state == SandboxState::running);
    }
    // They outlive the server, as any.
    f.restart();
    CHECK(f.life->index().size() == 6);
}

TEST_CASE("a fork of a paused sandbox runs, one of what has ended is refused") {
    ForkFixture f;
    const std::string source = f.create();
    f.loop.run([&]() -> Awaitable<void> {
        auto paused = co_await f.life->pause(source);
        REQUIRE(paused);
    });
    CHECK(f.fork(source, copies(1)));
    CHECK(f.status(source).state == SandboxState::paused);
    const std::string other = f.create();
    runtime::Exit exit;
    exit.code = 1;
    f.runtime.listener(other, exit);
    f.until([&] { return f.status(other).state == SandboxState::failed; });
    auto refused = f.fork(other, copies(1));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::conflict);
    CHECK(refused.error().wire() == "NATIVE::SANDBOX_NOT_RUNNING");
    CHECK(f.fork("nobody", copies(1)).error().wire() == "NATIVE::SANDBOX_NOT_FOUND");
    f.runtime.able.forks = false;
    CHECK(f.fork(source, copies(1)).error().code() == ErrorCode::unsupported);
}

TEST_CASE("a fork of which one copy fails leaves none") {
    ForkFixture f;
    const std::string source = f.create();
    f.runtime.creates_until_error = 4;
    auto refused = f.fork(source, copies(5));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().wire() == "NATIVE::SANDBOX_START_FAILED");
    CHECK_THAT(refused.error().message(), Catch::Contains("no more slots"));
    CHECK(f.runtime.objects.size() == 1);
    CHECK(f.runtime.bases.empty());
    CHECK(f.rows() == 1);
    CHECK(f.life->index().size() == 1);
    f.runtime.creates_until_error = SIZE_MAX;
    f.runtime.snapshot_error = Error(ErrorCode::resource_exhausted, "the disk is full");
    auto full = f.fork(source, copies(5));
    REQUIRE_FALSE(full);
    CHECK_THAT(full.error().message(), Catch::Contains("the disk is full"));
    CHECK(f.rows() == 1);
}

TEST_CASE("a fork counts against the quota as so many sandboxes") {
    ForkFixture f;
    const std::string source = f.create();
    Requester requester;
    requester.quota.max_sandboxes = 4;
    auto refused = f.fork(source, copies(4), requester);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().wire() == "SANDBOX::QUOTA_EXCEEDED");
    CHECK(f.runtime.forked.empty());
    CHECK(f.fork(source, copies(3), requester));
    CHECK_FALSE(f.fork(source, copies(1), requester));
}

TEST_CASE("a server that dies in the middle of a fork leaves no copy of it") {
    ForkFixture f;
    const std::string source = f.create();
    f.runtime.hold = std::make_shared<net::Latch>(f.loop.executor());
    bool answered = false;
    net::spawn(
        f.loop.executor(),
        [](ForkFixture& f, std::string source, bool& answered) -> Awaitable<void> {
            (void)co_await f.life->fork(source, copies(3), {});
            answered = true;
        }(f, source, answered),
        "fork");
    f.until([&] { return f.runtime.specs.size() == 4; });
    REQUIRE_FALSE(answered);
    CHECK(f.rows() == 4);
    // What the next server finds: rows of sandboxes that never ran.
    const auto rows = f.store->load_sandboxes();
    REQUIRE(rows);
    for (const auto& row : *rows) {
        if (row.sandbox.id == source) continue;
        CHECK(row.sandbox.status.state == SandboxState::pending);
    }
    auto plan = plan_recovery(*rows, {}, now());
    CHECK(plan.remove.size() == 3);
    f.runtime.hold->open();
    f.until([&] { return answered; });
}

TEST_CASE("the source of a fork stays until its files are kept") {
    ForkFixture f;
    const std::string source = f.create();
    f.runtime.hold_snapshot = std::make_shared<net::Latch>(f.loop.executor());
    bool forked = false, removed = false;
    net::spawn(
        f.loop.executor(),
        [](ForkFixture& f, std::string source, bool& forked) -> Awaitable<void> {
            auto made = co_await f.life->fork(source, copies(2), {});
            forked = made.has_value();
        }(f, source, forked),
        "fork");
    net::spawn(
        f.loop.executor(),
        [](ForkFixture& f, std::string source, bool& removed) -> Awaitable<void> {
            auto done = co_await f.life->remove(source);
            removed = done.has_value();
        }(f, source, removed),
        "remove");
    f.loop.run([]() -> Awaitable<void> { co_await net::sleep_for(std::chrono::milliseconds(20)); });
    CHECK(f.runtime.destroyed.empty());
    f.runtime.hold_snapshot->open();
    f.until([&] { return forked && removed; });
    CHECK(f.life->index().size() == 2);
}
