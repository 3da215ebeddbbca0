#include "support/catch_result.hpp"
#include "unit/lifecycle/lifecycle_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using Catch::Contains;
using test_support::LifecycleFixture;

namespace {

store::SandboxRecord record(const std::string& tenant, std::int64_t cpu = 0,
                            std::int64_t memory = 0,
                            model::SandboxState state = model::SandboxState::running) {
    static int number = 0;
    store::SandboxRecord made;
    made.sandbox.id = "s" + std::to_string(++number);
    made.sandbox.status.state = state;
    made.tenant = tenant;
    made.cpu_millicores = cpu;
    made.memory_bytes = memory;
    return made;
}

model::Quota at_most(std::int64_t sandboxes) {
    model::Quota quota;
    quota.max_sandboxes = sandboxes;
    return quota;
}

}  // namespace

TEST_CASE("quota: each tenant's sandboxes are counted apart") {
    SandboxIndex index;
    QuotaLedger ledger;
    index.put(record("a"));
    index.put(record("b"));
    auto full = ledger.claim(record("a"), at_most(1), index);
    REQUIRE_FALSE(full.has_value());
    CHECK(full.error().code() == ErrorCode::resource_exhausted);
    CHECK(full.error().wire() == "SANDBOX::QUOTA_EXCEEDED");
    CHECK_THAT(full.error().message(), Contains("max_sandboxes = 1") && Contains("1 in use"));
    CHECK(ledger.claim(record("a"), at_most(2), index).has_value());
    CHECK(ledger.claim(record("c"), at_most(1), index).has_value());
    CHECK(ledger.claim(record("a"), model::Quota(), index).has_value());
}

TEST_CASE("quota: a create counts from its claim to its row, and not when it failed") {
    SandboxIndex index;
    QuotaLedger ledger;
    {
        auto first = ledger.claim(record("a"), at_most(2), index);
        auto second = ledger.claim(record("a"), at_most(2), index);
        REQUIRE(second.has_value());
        CHECK_FALSE(ledger.claim(record("a"), at_most(2), index).has_value());
        index.put(record("a"));
        first->release();
        CHECK(ledger.usage("a", index).sandboxes == 2);
        CHECK_FALSE(ledger.claim(record("a"), at_most(2), index).has_value());
    }
    CHECK(ledger.usage("a", index).sandboxes == 1);
}

TEST_CASE("quota: processors and memory are summed over what has not ended") {
    SandboxIndex index;
    QuotaLedger ledger;
    model::Quota quota;
    quota.max_cpu_millicores = 2000;
    quota.max_memory_bytes = 100 << 20;
    index.put(record("", 1500, 60 << 20));
    index.put(record("", 9000, 900 << 20, model::SandboxState::failed));
    CHECK(ledger.usage("", index) == Usage(2, 1500, 60 << 20));
    CHECK(ledger.claim(record("", 500, 40 << 20), quota, index).has_value());
    auto cpu = ledger.claim(record("", 501, 1), quota, index);
    REQUIRE_FALSE(cpu.has_value());
    CHECK_THAT(cpu.error().message(),
               Contains("max_cpu = 2") && Contains("1500m in use") && Contains("501m wanted"));
    auto memory = ledger.claim(record("", 1, 41 << 20), quota, index);
    REQUIRE_FALSE(memory.has_value());
    CHECK_THAT(memory.error().message(), Contains("max_memory = 100Mi") && Contains("60Mi in use"));
}

TEST_CASE("quota: what is counted must be stated") {
    SandboxIndex index;
    QuotaLedger ledger;
    model::Quota quota;
    quota.max_cpu_millicores = 2000;
    auto refused = ledger.claim(record("", 0, 0), quota, index);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::invalid_argument);
    CHECK_THAT(refused.error().message(), Contains("resourceLimits.cpu"));
}

TEST_CASE("quota: of many creates at once as many succeed as there is room for") {
    LifecycleFixture f;
    f.start();
    Requester requester;
    requester.quota = at_most(3);
    int made = 0;
    int refused = 0;
    for (int i = 0; i < 10; ++i) {
        auto one = [](LifecycleFixture& fixture, Requester who, int& yes,
                      int& no) -> Awaitable<void> {
            auto created = co_await fixture.life->create(LifecycleFixture::request(), std::nullopt,
                                                         std::move(who));
            if (created) {
                ++yes;
            } else {
                CHECK(created.error().wire() == "SANDBOX::QUOTA_EXCEEDED");
                ++no;
            }
        };
        net::spawn(f.loop.executor(), one(f, requester, made, refused), "create");
    }
    f.until([&] { return made + refused == 10; });
    CHECK(made == 3);
    CHECK(f.life->index().size() == 3);

    // Room comes back with a removal, and is not taken by a create that fails.
    std::string some;
    f.life->index().for_each([&](const store::SandboxRecord& r) { some = r.sandbox.id; });
    auto create = [&] {
        std::optional<Error> problem;
        f.loop.run([&]() -> Awaitable<void> {
            auto created =
                co_await f.life->create(LifecycleFixture::request(), std::nullopt, requester);
            if (!created) problem = created.error();
        });
        return problem;
    };
    CHECK(create()->wire() == "SANDBOX::QUOTA_EXCEEDED");
    f.loop.run([&]() -> Awaitable<void> {
        auto removed = co_await f.life->remove(some);
        CHECK(removed);
    });
    f.runtime.create_error = Error(ErrorCode::internal, "no");
    CHECK(create()->wire() != "SANDBOX::QUOTA_EXCEEDED");
    f.runtime.create_error.reset();
    CHECK_FALSE(create());
}

TEST_CASE("extend lets a sandbox live longer and never shorter") {
    LifecycleFixture f;
    f.start();
    std::string id = f.create(LifecycleFixture::request(600));
    auto before = *f.life->index().find(id)->record.sandbox.expires_at;
    auto extend = [&](std::string which, std::chrono::seconds by) {
        std::optional<Result<Timestamp>> outcome;
        f.loop.run([&]() -> Awaitable<void> { outcome = co_await f.life->extend(which, by); });
        return *outcome;
    };
    CHECK(extend(id, std::chrono::seconds(300)).value() == before);
    CHECK(extend(id, std::chrono::seconds(900)).value() >= before + std::chrono::seconds(299));
    CHECK(extend("none", std::chrono::seconds(1)).error().code() == ErrorCode::not_found);
    std::string forever = f.create(LifecycleFixture::request(std::nullopt));
    CHECK(extend(forever, std::chrono::seconds(1)).error().code() == ErrorCode::conflict);
    f.runtime.listener(id, runtime::Exit());
    f.until([&] { return f.status(id).state == model::SandboxState::terminated; });
    CHECK(extend(id, std::chrono::seconds(9000)).error().code() == ErrorCode::conflict);
}
