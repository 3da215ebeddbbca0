#include "lifecycle/transition.hpp"
#include "unit/lifecycle/lifecycle_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using model::SandboxState;
using test_support::LifecycleFixture;

namespace {

std::optional<IdempotencyKey> key_of(const std::string& key, const std::string& body = "body") {
    return make_idempotency_key(key, body).value();
}

}  // namespace

TEST_CASE("create: the row says Pending before anything is made, Running when it answers") {
    LifecycleFixture f;
    f.start();
    f.runtime.hold = std::make_shared<net::Latch>(f.loop.executor());
    std::string pending;
    f.loop.run([&]() -> Awaitable<void> {
        auto watch = [&]() -> Awaitable<void> {
            while (f.runtime.specs.empty())
                co_await net::sleep_for(std::chrono::milliseconds(1));
            pending =
                f.store->load_sandboxes()->front().sandbox.status.state == SandboxState::pending
                    ? f.life->list(ListQuery())
                    : "";
            f.runtime.hold->open();
        };
        net::spawn(f.loop.executor(), watch(), "watch");
        auto made = co_await f.life->create(f.request(), std::nullopt, {});
        REQUIRE(made.has_value());
        REQUIRE(made->json.find("\"Running\"") != std::string::npos);
        REQUIRE(f.status(made->id).state == SandboxState::running);
        auto agent = f.life->agent(made->id);
        REQUIRE(agent->token == f.runtime.specs[0].agent_token);
    });
    REQUIRE(pending.find("\"Pending\"") != std::string::npos);
}

TEST_CASE("create: what the image's name meant is told, also to a server that begins anew") {
    LifecycleFixture f;
    f.runtime.digest = "sha256:" + std::string(64, 'a');
    f.start();
    const std::string wanted = "\"resolvedImageDigest\":\"" + f.runtime.digest + "\"";
    Result<Lifecycle::Created> made = Error();
    f.loop.run([&]() -> Awaitable<void> {
        made = co_await f.life->create(f.request(), std::nullopt, {});
    });
    REQUIRE(made);
    CHECK(made->json.find(wanted) != std::string::npos);
    CHECK(std::string(f.life->get(made->id).value()).find(wanted) != std::string::npos);
    CHECK(f.life->list(ListQuery()).find(wanted) != std::string::npos);
    CHECK(f.store->load_sandboxes()->front().sandbox.image_digest == f.runtime.digest);
}

TEST_CASE("create: what the runtime confirms of interception is told, and nothing else") {
    LifecycleFixture f;
    f.runtime.interception = GENERATE("", "all", "credential-bound");
    f.start();
    const std::string wanted =
        R"("credentialProxy":{"interceptionMode":")" + f.runtime.interception + "\"}";
    Result<Lifecycle::Created> made = Error();
    f.loop.run([&]() -> Awaitable<void> {
        auto request = f.request();
        request.credential_bound = true;
        made = co_await f.life->create(std::move(request), std::nullopt, {});
    });
    REQUIRE(made);
    const bool told = !f.runtime.interception.empty();
    CHECK((made->json.find(wanted) != std::string::npos) == told);
    CHECK((made->json.find("credentialProxy") != std::string::npos) == told);
    CHECK((std::string(f.life->get(made->id).value()).find(wanted) != std::string::npos) == told);
    CHECK(f.store->load_sandboxes()->front().sandbox.interception_mode == f.runtime.interception);
    CHECK(f.runtime.specs[0].credential_bound);
}

TEST_CASE("create: a failure of the runtime leaves no row and names its code") {
    LifecycleFixture f;
    f.start();
    auto error_of = [&](Error error) {
        f.runtime.create_error = std::move(error);
        Error got;
        f.loop.run([&]() -> Awaitable<void> {
            auto made = co_await f.life->create(f.request(), std::nullopt, {});
            REQUIRE_FALSE(made.has_value());
            got = made.error();
        });
        return got;
    };
    auto unknown = error_of(
        Error(ErrorCode::not_found, "NATIVE::SANDBOX_IMAGE_PULL_FAILED", "image 'x' not found"));
    CHECK(unknown.wire() == "NATIVE::SANDBOX_IMAGE_PULL_FAILED");
    CHECK(unknown.code() == ErrorCode::internal);
    CHECK(unknown.message() == "image.uri: image 'x' not found");
    auto broken = error_of(Error(ErrorCode::io, "mount"));
    CHECK(broken.wire() == "NATIVE::SANDBOX_START_FAILED");
    CHECK(broken.code() == ErrorCode::internal);
    auto full = error_of(Error(ErrorCode::resource_exhausted, "no address left"));
    CHECK(full.code() == ErrorCode::internal);
    REQUIRE(f.life->index().size() == 0);
    REQUIRE(f.store->load_sandboxes()->empty());
}

TEST_CASE("an exit during creation is not lost") {
    LifecycleFixture f;
    f.start();
    f.runtime.exit_while_creating.emplace();
    auto id = f.create();
    f.until([&] { return f.status(id).state == SandboxState::terminated; });
    REQUIRE(f.store->load_sandboxes()->front().sandbox.status.state == SandboxState::terminated);
}

TEST_CASE("an exit is recorded and the sandbox stays listed until it is deleted") {
    LifecycleFixture f;
    f.start();
    auto id = f.create();
    runtime::Exit exit;
    exit.signal = 9;
    exit.code = -1;
    exit.reason = "AGENT_KILLED";
    f.runtime.listener(id, exit);
    f.until([&] { return f.status(id).state == SandboxState::failed; });
    REQUIRE(f.status(id).reason == "AGENT_KILLED");
    REQUIRE(f.life->get(id).has_value());
    f.loop.run([&]() -> Awaitable<void> {
        auto removed = co_await f.life->remove(id);
        REQUIRE(removed);
    });
    REQUIRE(f.runtime.objects.empty());
    REQUIRE_FALSE(f.life->get(id).has_value());
}

TEST_CASE("remove: unknown is 404, known is gone from store and runtime") {
    LifecycleFixture f;
    f.start();
    auto id = f.create();
    f.loop.run([&]() -> Awaitable<void> {
        auto unknown = co_await f.life->remove("none");
        REQUIRE(unknown.error().wire() == "NATIVE::SANDBOX_NOT_FOUND");
        REQUIRE(unknown.error().message() == "Sandbox none not found.");
        auto removed = co_await f.life->remove(id);
        REQUIRE(removed);
        auto again = co_await f.life->remove(id);
        REQUIRE(again.error().code() == ErrorCode::not_found);
    });
    REQUIRE(f.store->load_sandboxes()->empty());
    REQUIRE(f.runtime.objects.empty());
}

TEST_CASE("remove: concurrent removals are one") {
    LifecycleFixture f;
    f.start();
    auto id = f.create();
    f.runtime.hold_destroy = std::make_shared<net::Latch>(f.loop.executor());
    int succeeded = 0;
    auto remove = [&]() -> Awaitable<void> {
        auto removed = co_await f.life->remove(id);
        if (removed) ++succeeded;
    };
    for (int i = 0; i < 3; ++i)
        net::spawn(f.loop.executor(), remove(), "remove");
    f.until([&] { return !f.runtime.destroyed.empty(); });
    REQUIRE(f.status(id).state == SandboxState::stopping);
    f.runtime.hold_destroy->open();
    f.until([&] { return succeeded == 3; });
    REQUIRE(f.runtime.destroyed.size() == 1);
}

TEST_CASE("remove: a failure leaves the sandbox as it was") {
    LifecycleFixture f;
    f.start();
    auto id = f.create();
    f.runtime.destroy_error = Error(ErrorCode::io, "busy");
    f.loop.run([&]() -> Awaitable<void> {
        auto removed = co_await f.life->remove(id);
        REQUIRE(removed.error().wire() == "NATIVE::SANDBOX_DELETE_FAILED");
    });
    REQUIRE(f.status(id).state == SandboxState::running);
    f.runtime.destroy_error.reset();
    f.loop.run([&]() -> Awaitable<void> {
        auto removed = co_await f.life->remove(id);
        REQUIRE(removed);
    });
}

TEST_CASE("renew: future times only, and only where there is an expiry") {
    LifecycleFixture f;
    f.start();
    auto id = f.create();
    auto forever = f.create(f.request(std::nullopt));
    f.loop.run([&]() -> Awaitable<void> {
        auto later = now() + std::chrono::hours(5);
        auto renewed = co_await f.life->renew(id, later);
        REQUIRE(renewed.has_value());
        REQUIRE(*renewed == later);
        auto shorter = co_await f.life->renew(id, now() + std::chrono::minutes(1));
        REQUIRE(shorter.has_value());
        auto past = co_await f.life->renew(id, now() - std::chrono::seconds(1));
        REQUIRE(past.error().code() == ErrorCode::invalid_argument);
        REQUIRE(past.error().wire() == "NATIVE::INVALID_EXPIRATION");
        auto manual = co_await f.life->renew(forever, later);
        REQUIRE(manual.error().code() == ErrorCode::conflict);
        auto unknown = co_await f.life->renew("none", now() - std::chrono::seconds(1));
        REQUIRE(unknown.error().code() == ErrorCode::not_found);
    });
    f.restart();
    auto expires = f.life->index().find(id)->record.sandbox.expires_at;
    REQUIRE(*expires < now() + std::chrono::minutes(2));
}

TEST_CASE("expiry removes what is due and nothing else") {
    LifecycleFixture f;
    f.start();
    auto due = f.create();
    auto kept = f.create();
    f.loop.run([&]() -> Awaitable<void> {
        auto renewed = co_await f.life->renew(due, now() + std::chrono::milliseconds(30));
        REQUIRE(renewed.has_value());
    });
    f.until([&] { return !f.life->get(due).has_value(); });
    REQUIRE(f.life->get(kept).has_value());
    REQUIRE_FALSE(f.runtime.objects.contains(due));
    REQUIRE(f.runtime.objects.contains(kept));
}

TEST_CASE("expiry also removes sandboxes that have ended") {
    LifecycleFixture f;
    f.start();
    auto id = f.create();
    f.runtime.listener(id, runtime::Exit());
    f.until([&] { return f.status(id).state == SandboxState::terminated; });
    f.loop.run([&]() -> Awaitable<void> {
        auto renewed = co_await f.life->renew(id, now() + std::chrono::milliseconds(20));
        REQUIRE(renewed.has_value());
    });
    f.until([&] { return !f.life->get(id).has_value(); });
    REQUIRE(f.store->load_sandboxes()->empty());
}

TEST_CASE("metadata patches are kept across a restart") {
    LifecycleFixture f;
    f.start();
    auto id = f.create();
    f.loop.run([&]() -> Awaitable<void> {
        auto patched = co_await f.life->patch_metadata(id, {{"a", "1"}, {"gone", std::nullopt}});
        REQUIRE(patched.has_value());
        REQUIRE(patched->find(R"("metadata":{"a":"1"})") != std::string::npos);
        auto reserved = co_await f.life->patch_metadata(id, {{"opensandbox.io/x", "1"}});
        REQUIRE(reserved.error().wire() == "INVALID_METADATA_LABEL");
        auto unknown = co_await f.life->patch_metadata("none", {});
        REQUIRE(unknown.error().code() == ErrorCode::not_found);
    });
    f.restart();
    REQUIRE(f.life->get(id)->find(R"("metadata":{"a":"1"})") != std::string_view::npos);
}

TEST_CASE("concurrent patches of one sandbox both count") {
    LifecycleFixture f;
    f.start();
    auto id = f.create();
    int done = 0;
    auto patch = [&](std::string key) -> Awaitable<void> {
        model::MetadataPatch change{{key, "1"}};
        auto patched = co_await f.life->patch_metadata(id, std::move(change));
        if (patched) ++done;
    };
    for (int i = 0; i < 10; ++i)
        net::spawn(f.loop.executor(), patch("k" + std::to_string(i)), "patch");
    f.until([&] { return done == 10; });
    REQUIRE(f.life->index().find(id)->record.sandbox.metadata->size() == 10);
    REQUIRE(f.store->load_sandboxes()->front().sandbox.metadata->size() == 10);
}

TEST_CASE("the same key and body make one sandbox, also at once and after a restart") {
    LifecycleFixture f;
    f.start();
    std::vector<std::string> ids;
    auto create = [&]() -> Awaitable<void> {
        auto made = co_await f.life->create(f.request(), key_of("k"), {});
        if (made) ids.push_back(made->id);
    };
    for (int i = 0; i < 3; ++i)
        net::spawn(f.loop.executor(), create(), "create");
    f.until([&] { return ids.size() == 3; });
    REQUIRE(ids[0] == ids[1]);
    REQUIRE(ids[1] == ids[2]);
    REQUIRE(f.runtime.specs.size() == 1);
    f.restart();
    f.loop.run([&]() -> Awaitable<void> {
        auto again = co_await f.life->create(f.request(), key_of("k"), {});
        REQUIRE(again.has_value());
        REQUIRE(again->id == ids[0]);
        REQUIRE(again->replayed);
        auto other = co_await f.life->create(f.request(), key_of("k", "other body"), {});
        REQUIRE(other.error().wire() == "IDEMPOTENCY_KEY_REUSED");
        auto removed = co_await f.life->remove(ids[0]);
        REQUIRE(removed);
        auto spent = co_await f.life->create(f.request(), key_of("k"), {});
        REQUIRE(spent.error().wire() == "IDEMPOTENCY_KEY_SPENT");
    });
}

TEST_CASE("a key whose create failed may be used again") {
    LifecycleFixture f;
    f.start();
    f.runtime.create_error = Error(ErrorCode::io, "broken");
    f.loop.run([&]() -> Awaitable<void> {
        auto failed = co_await f.life->create(f.request(), key_of("k"), {});
        REQUIRE_FALSE(failed.has_value());
        f.runtime.create_error.reset();
        auto made = co_await f.life->create(f.request(), key_of("k"), {});
        REQUIRE(made.has_value());
        REQUIRE_FALSE(made->replayed);
    });
}

TEST_CASE("restart: live ones are adopted, lost ones failed, orphans destroyed, halves removed") {
    LifecycleFixture f;
    f.start();
    auto lives = f.create();
    auto moved = f.create();
    auto lost = f.create();
    auto died = f.create();
    auto half = f.create();
    auto overdue = f.create();
    REQUIRE(f.store->set_status(half, starting(now())));
    REQUIRE(f.store->set_expiry(overdue, now() - std::chrono::seconds(5)));
    f.runtime.objects[moved].port = 4242;
    f.runtime.objects.erase(lost);
    f.runtime.exits[died].code = 2;
    f.runtime.objects["orphan"] = runtime::AgentAddress("127.0.0.1", 9);
    f.restart();
    REQUIRE(f.status(lives).state == SandboxState::running);
    REQUIRE(f.life->agent(moved)->endpoints.agent.port == 4242);
    REQUIRE(f.status(lost).state == SandboxState::failed);
    REQUIRE(f.status(lost).reason == "SANDBOX_LOST");
    REQUIRE(f.status(died).reason == "CONTAINER_EXITED_ERROR");
    f.until([&] {
        return !f.life->get(half).has_value() && !f.life->get(overdue).has_value() &&
               !f.runtime.objects.contains("orphan");
    });
    REQUIRE(f.store->load_sandboxes()->size() == 4);
    f.restart();
    REQUIRE(f.status(lost).reason == "SANDBOX_LOST");
    REQUIRE(f.life->index().size() == 4);
}

TEST_CASE("stop waits for a create in flight") {
    LifecycleFixture f;
    f.start();
    f.runtime.hold = std::make_shared<net::Latch>(f.loop.executor());
    bool made = false;
    auto create = [&]() -> Awaitable<void> {
        auto created = co_await f.life->create(f.request(), std::nullopt, {});
        made = created.has_value();
    };
    auto release = [&]() -> Awaitable<void> {
        co_await net::sleep_for(std::chrono::milliseconds(20));
        f.runtime.hold->open();
    };
    net::spawn(f.loop.executor(), create(), "create");
    f.until([&] { return !f.runtime.specs.empty(); });
    net::spawn(f.loop.executor(), release(), "release");
    f.loop.run([&]() -> Awaitable<void> { co_await f.life->stop(std::chrono::seconds(10)); });
    REQUIRE(made);
}
