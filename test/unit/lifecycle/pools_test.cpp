#include "unit/lifecycle/lifecycle_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using test_support::LifecycleFixture;

namespace {

struct PoolFixture : LifecycleFixture {
    PoolFixture() {
        runtime.able.pools = true;
        start();
    }
    Result<std::string> make_pool(const std::string& name, model::PoolCapacity capacity) {
        Result<std::string> made = Error();
        loop.run([&]() -> Awaitable<void> {
            model::PoolRequest request;
            request.name = name;
            request.template_json = R"({"image":{"uri":"host"},"env":{"A":"1"}})";
            request.capacity = capacity;
            made = co_await life->pools().create(request, std::string());
        });
        return made;
    }
    [[nodiscard]] std::string json(const std::string& name) const {
        auto found = life->pools().get(Pools::Key("", name));
        return found ? found.value() : found.error().wire();
    }
    /// Waits until the pool shows these figures and is at rest.
    void rest(const std::string& name, int total, int allocated, int available) {
        std::string wanted = "\"total\":" + std::to_string(total) +
                             ",\"allocated\":" + std::to_string(allocated) +
                             ",\"available\":" + std::to_string(available);
        until([&] {
            return json(name).find(wanted) != std::string::npos && life->pools().busy() == 0;
        });
    }
    Result<Lifecycle::Created> take(const std::string& pool, model::CreateRequest request = {}) {
        request.extensions.emplace_back("poolRef", pool);
        Result<Lifecycle::Created> made = Error();
        loop.run(
            [&]() -> Awaitable<void> { made = co_await life->create(request, std::nullopt, {}); });
        return made;
    }
    void remove(const std::string& id) {
        loop.run([&]() -> Awaitable<void> {
            auto removed = co_await life->remove(id);
            CHECK(removed);
        });
    }
};

}  // namespace

TEST_CASE("a pool fills itself with idle sandboxes that nobody sees") {
    PoolFixture f;
    REQUIRE(f.make_pool("p", model::PoolCapacity(2, 2, 0, 5)));
    f.rest("p", 2, 0, 2);
    CHECK(f.life->index().size() == 0);
    CHECK(f.store->load_sandboxes()->size() == 2);
    auto id = f.runtime.objects.begin()->first;
    CHECK(f.life->get(id).error().wire() == "NATIVE::SANDBOX_NOT_FOUND");
    CHECK(f.make_pool("p", model::PoolCapacity()).error().wire() ==
          "KUBERNETES::POOL_ALREADY_EXISTS");
}

TEST_CASE("a create takes an idle sandbox and shows where it is from") {
    PoolFixture f;
    REQUIRE(f.make_pool("p", model::PoolCapacity(1, 1, 0, 3)));
    f.rest("p", 1, 0, 1);
    auto idle = f.runtime.objects.begin()->first;
    model::CreateRequest request;
    request.metadata = model::StringMap{{"user", "x"}};
    request.timeout_seconds = 600;
    auto made = f.take("p", request);
    REQUIRE(made);
    CHECK(made->id == idle);
    auto json = std::string(f.life->get(idle).value());
    CHECK(json.find(R"("allocation":{"mode":"pool","poolRef":"p","state":"allocated"})") !=
          std::string::npos);
    CHECK(json.find("\"user\":\"x\"") != std::string::npos);
    CHECK(json.find("\"expiresAt\"") != std::string::npos);
    CHECK(f.life->agent(idle)->token == f.runtime.specs[0].agent_token);
    f.rest("p", 2, 1, 1);
    f.remove(idle);
    f.rest("p", 1, 0, 1);
}

TEST_CASE("any pool that suits: one that has a sandbox ready, else one with room") {
    PoolFixture f;
    f.runtime.digest = "sha256:" + std::string(64, 'a');
    CHECK(f.take("*").error().wire() == "KUBERNETES::POOL_NOT_FOUND");
    REQUIRE(f.make_pool("a", model::PoolCapacity(0, 0, 0, 1)));
    REQUIRE(f.make_pool("b", model::PoolCapacity(1, 1, 0, 1)));
    f.rest("b", 1, 0, 1);
    const auto pool_of_made = [&](const Result<Lifecycle::Created>& made) {
        REQUIRE(made);
        const std::string json(f.life->get(made->id).value());
        CHECK(json.find("resolvedImageDigest") == std::string::npos);
        const auto at = json.find("\"poolRef\":\"") + 11;
        return json.substr(at, 1);
    };
    model::CreateRequest other;
    other.image = "python:3.12";
    CHECK(f.take("*", other).error().message().find("image.uri") != std::string::npos);
    CHECK(pool_of_made(f.take("*")) == "b");
    CHECK(pool_of_made(f.take("*")) == "a");
    CHECK(f.take("*").error().wire() == "KUBERNETES::POOL_CAPACITY_EXHAUSTED");
}

TEST_CASE(
    "a pool whose template is not accepted any more makes nothing, and keeps nobody from "
    "starting") {
    PoolFixture f;
    REQUIRE(f.make_pool("p", model::PoolCapacity(1, 1, 0, 3)));
    f.rest("p", 1, 0, 1);
    auto record = f.store->pools().load().value().front();
    REQUIRE(f.store->pools().remove("", "p"));
    record.pool.template_json =
        R"({"image":{"uri":"host"},"networkPolicy":{"egress":[{"action":"allow","any":1}]}})";
    REQUIRE(f.store->pools().insert(record));
    f.restart();
    f.rest("p", 0, 0, 0);
    CHECK(f.runtime.objects.empty());
    const auto refused = f.take("p");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::invalid_argument);
    CHECK(refused.error().message().find("networkPolicy.egress.0") != std::string::npos);
}

TEST_CASE("variables and programs of a request make a sandbox of the pool's kind with them") {
    PoolFixture f;
    REQUIRE(f.make_pool("p", model::PoolCapacity(1, 1, 0, 3)));
    f.rest("p", 1, 0, 1);
    model::CreateRequest request;
    request.env = {{"B", "2"}};
    request.entrypoint = {"sleep", "9"};
    auto made = f.take("p", request);
    REQUIRE(made);
    const auto& spec = f.runtime.specs.back();
    CHECK(spec.id == made->id);
    CHECK(spec.image == "host");
    CHECK(spec.env[0] == std::pair<std::string, std::string>("A", "1"));
    CHECK(spec.env[1] == std::pair<std::string, std::string>("B", "2"));
    CHECK(spec.entrypoint.front() == "sleep");
    f.rest("p", 2, 1, 1);
}

TEST_CASE("a pool that has given all it may says so; one that is not there, too") {
    PoolFixture f;
    REQUIRE(f.make_pool("p", model::PoolCapacity(1, 1, 0, 2)));
    f.rest("p", 1, 0, 1);
    REQUIRE(f.take("p"));
    f.rest("p", 2, 1, 1);
    // One with its own variables takes the place of the idle one.
    model::CreateRequest own;
    own.env = {{"B", "2"}};
    auto last = f.take("p", own);
    REQUIRE(last);
    f.rest("p", 2, 2, 0);
    auto refused = f.take("p");
    CHECK(refused.error().wire() == "KUBERNETES::POOL_CAPACITY_EXHAUSTED");
    CHECK(refused.error().code() == ErrorCode::resource_exhausted);
    f.remove(last->id);
    f.rest("p", 2, 1, 1);
    CHECK(f.take("p"));
    CHECK(f.take("none").error().wire() == "KUBERNETES::POOL_NOT_FOUND");
}

TEST_CASE("creates at once share the idle ones, none gets another's") {
    PoolFixture f;
    REQUIRE(f.make_pool("p", model::PoolCapacity(3, 3, 0, 10)));
    f.rest("p", 3, 0, 3);
    std::set<std::string> ids;
    std::size_t done = 0;
    auto one = [&]() -> Awaitable<void> {
        model::CreateRequest request;
        request.extensions = {{"poolRef", "p"}};
        auto made = co_await f.life->create(request, std::nullopt, {});
        ++done;
        if (made) ids.insert(made->id);
    };
    for (int i = 0; i < 12; ++i)
        net::spawn(f.loop.executor(), one(), "create");
    f.until([&] { return done == 12; });
    CHECK(ids.size() == 10);
    f.rest("p", 10, 10, 0);
    CHECK(f.runtime.objects.size() == 10);
}

TEST_CASE("a pool grows and shrinks with its capacity and goes with its idle ones") {
    PoolFixture f;
    REQUIRE(f.make_pool("p", model::PoolCapacity(1, 1, 0, 3)));
    f.rest("p", 1, 0, 1);
    auto made = f.take("p");
    auto resize = [&](model::PoolCapacity capacity) {
        f.loop.run([&]() -> Awaitable<void> {
            auto resized = co_await f.life->pools().resize(Pools::Key("", "p"), capacity);
            CHECK(resized);
        });
    };
    resize(model::PoolCapacity(4, 4, 0, 9));
    f.rest("p", 5, 1, 4);
    CHECK(f.json("p").find("\"revision\":\"2\"") != std::string::npos);
    resize(model::PoolCapacity(0, 1, 0, 9));
    f.rest("p", 2, 1, 1);
    f.loop.run([&]() -> Awaitable<void> {
        auto removed = co_await f.life->pools().remove(Pools::Key("", "p"));
        CHECK(removed);
    });
    CHECK(f.json("p") == "KUBERNETES::POOL_NOT_FOUND");
    CHECK(f.runtime.objects.size() == 1);
    CHECK(f.life->get(made->id));
    CHECK(f.store->load_sandboxes()->size() == 1);
}

TEST_CASE("an idle sandbox that ends is replaced") {
    PoolFixture f;
    REQUIRE(f.make_pool("p", model::PoolCapacity(1, 1, 0, 3)));
    f.rest("p", 1, 0, 1);
    auto first = f.runtime.objects.begin()->first;
    f.runtime.listener(first, runtime::Exit());
    f.until([&] { return !f.runtime.objects.contains(first); });
    f.rest("p", 1, 0, 1);
    CHECK_FALSE(f.runtime.objects.contains(first));
    CHECK(f.store->load_sandboxes()->size() == 1);
}

TEST_CASE("idle sandboxes outlive the server; without their pool, or dead, they go") {
    PoolFixture f;
    REQUIRE(f.make_pool("kept", model::PoolCapacity(2, 2, 0, 5)));
    REQUIRE(f.make_pool("gone", model::PoolCapacity(1, 1, 0, 5)));
    f.rest("kept", 2, 0, 2);
    f.rest("gone", 1, 0, 1);
    auto taken = f.take("kept");
    REQUIRE(taken);
    f.rest("kept", 3, 1, 2);
    std::set<std::string> before;
    for (const auto& row : f.store->load_sandboxes().value()) {
        if (row.pool_idle && row.sandbox.pool == "kept") before.insert(row.sandbox.id);
    }
    auto dead = *before.begin();
    f.runtime.exits[dead].code = 1;
    REQUIRE(f.store->pools().remove("", "gone"));
    f.restart();
    f.rest("kept", 3, 1, 2);
    CHECK(f.json("gone") == "KUBERNETES::POOL_NOT_FOUND");
    f.until([&] { return f.runtime.objects.size() == 3; });
    CHECK_FALSE(f.runtime.objects.contains(dead));
    CHECK(f.runtime.objects.contains(*before.rbegin()));
    CHECK(f.life->get(taken->id));
    CHECK(f.life->index().size() == 1);
}

TEST_CASE("a pool whose sandboxes cannot be made stays empty and says what it has") {
    PoolFixture f;
    f.runtime.create_error.emplace(ErrorCode::io, "no image");
    REQUIRE(f.make_pool("p", model::PoolCapacity(2, 2, 0, 5)));
    f.until([&] { return f.runtime.specs.size() >= 1; });
    f.rest("p", 0, 0, 0);
    CHECK(f.store->load_sandboxes()->empty());
    CHECK(f.take("p").error().wire() == "NATIVE::SANDBOX_START_FAILED");
    CHECK(f.json("p").find("\"allocated\":0") != std::string::npos);
}

TEST_CASE("a runtime without pools refuses them") {
    LifecycleFixture f;
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        model::PoolRequest request;
        auto made = co_await f.life->pools().create(request, std::string());
        CHECK(made.error().wire() == "KUBERNETES::POOL_NOT_SUPPORTED");
        CHECK(made.error().code() == ErrorCode::unsupported);
        model::CreateRequest wanted = f.request();
        wanted.extensions = {{"poolRef", "p"}};
        auto created = co_await f.life->create(wanted, std::nullopt, {});
        CHECK(created.error().wire() == "SANDBOX::UNSUPPORTED_POOL_REF");
    });
}
