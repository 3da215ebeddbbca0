#include "unit/sdk/pool_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::sdk::test;
using sdk::AcquireOptions;
using sdk::AcquirePolicy;
using sdk::PoolState;

TEST_CASE("a pool fills itself, gives out the oldest, and fills up again") {
    Loop loop;
    FakeCloud cloud(loop);
    loop.run([&]() -> Awaitable<void> {
        auto pool = open_pool(cloud, quick_options(3, sdk::memory_pool_store()));
        REQUIRE((co_await pool.start()).has_value());
        REQUIRE((co_await pool.start()).has_value());  // runs already
        co_await filled(pool, 3);
        CHECK(cloud.created == 3);
        CHECK(cloud.last_create.find("\"timeout\":86400") != std::string::npos);
        auto idle = co_await pool.idle_entries();
        AcquireOptions how(AcquirePolicy::fail_fast);
        how.timeout = 120s;
        auto sandbox = co_await pool.acquire(how);
        REQUIRE(sandbox.has_value());
        CHECK(sandbox->id() == idle->at(0).sandbox_id);
        CHECK(cloud.renewed[sandbox->id()] == 1);
        co_await filled(pool, 3);
        CHECK(cloud.created == 4);
        CHECK(cloud.deleted == 0);
        auto shot = co_await pool.snapshot();
        CHECK(shot->state == PoolState::healthy);
        CHECK(shot->primary);
        CHECK(shot->max_idle == 3);
        REQUIRE((co_await pool.shutdown()).has_value());
        shot = co_await pool.snapshot();
        CHECK(shot->state == PoolState::stopped);
        CHECK(shot->idle_count == 3);  // they wait for whoever starts it again
        CHECK(*(co_await pool.release_idle()) == 3);
        CHECK(cloud.alive.size() == 1);
    });
}

TEST_CASE("a pool is made smaller and larger") {
    Loop loop;
    FakeCloud cloud(loop);
    loop.run([&]() -> Awaitable<void> {
        auto pool = open_pool(cloud, quick_options(4, sdk::memory_pool_store()));
        REQUIRE((co_await pool.start()).has_value());
        co_await filled(pool, 4);
        REQUIRE((co_await pool.resize(1)).has_value());
        co_await filled(pool, 1);
        co_await until([&] { return cloud.alive.size() == 1; });
        REQUIRE((co_await pool.resize(2)).has_value());
        co_await filled(pool, 2);
        CHECK((co_await pool.resize(1'000'000)).error().code() == sdk::ErrorCode::invalid_argument);
        REQUIRE((co_await pool.shutdown()).has_value());
    });
}

TEST_CASE("what happens when nothing is idle is the policy's") {
    Loop loop;
    FakeCloud cloud(loop);
    loop.run([&]() -> Awaitable<void> {
        auto pool = open_pool(cloud, quick_options(0, sdk::memory_pool_store()));
        auto early = co_await pool.acquire();
        REQUIRE(early.has_error());
        CHECK(early.error().wire_code() == "POOL_NOT_RUNNING");
        REQUIRE((co_await pool.start()).has_value());
        for (auto policy : {AcquirePolicy::fail_fast, AcquirePolicy::retry_next_idle}) {
            auto refused = co_await pool.acquire(AcquireOptions(policy));
            REQUIRE(refused.has_error());
            CHECK(refused.error().wire_code() == "POOL_EMPTY");
            CHECK(refused.error().code() == sdk::ErrorCode::resource_exhausted);
        }
        CHECK(cloud.created == 0);
        for (auto policy :
             {AcquirePolicy::direct_create, AcquirePolicy::retry_next_idle_then_create}) {
            auto sandbox = co_await pool.acquire(AcquireOptions(policy));
            CHECK(sandbox.has_value());
        }
        CHECK(cloud.created == 2);
        REQUIRE((co_await pool.shutdown()).has_value());
    });
}

TEST_CASE("stale sandboxes are deleted, and as many tried as the policy allows") {
    Loop loop;
    FakeCloud cloud(loop);
    loop.run([&]() -> Awaitable<void> {
        auto store = sdk::memory_pool_store();
        auto options = quick_options(9, store);
        options.reconcile_interval = 10min;
        REQUIRE(*(co_await store->acquire_primary_lock("pool", "somebody else", 1h)));
        auto pool = open_pool(cloud, options);
        REQUIRE((co_await pool.start()).has_value());
        auto put = [&](std::string id, bool answers) -> Awaitable<void> {
            cloud.alive.insert(id);
            if (!answers) cloud.silent.insert(id);
            auto done = co_await store->put_idle("pool", id);
            REQUIRE(done.has_value());
        };
        co_await put("dumb", false);
        auto refused = co_await pool.acquire(AcquireOptions(AcquirePolicy::fail_fast));
        REQUIRE(refused.has_error());
        CHECK(refused.error().wire_code() == "POOL_ACQUIRE_FAILED");
        co_await until([&] { return !cloud.alive.contains("dumb"); });

        REQUIRE((co_await store->put_idle("pool", "gone")).has_value());
        co_await put("dumb2", false);
        co_await put("good", true);
        auto sandbox = co_await pool.acquire(AcquireOptions(AcquirePolicy::retry_next_idle));
        REQUIRE(sandbox.has_value());
        CHECK(sandbox->id() == "good");
        CHECK(cloud.created == 0);

        for (const char* id : {"a", "b", "c"})
            REQUIRE((co_await store->put_idle("pool", id)).has_value());
        co_await put("late", true);
        sandbox = co_await pool.acquire(AcquireOptions(AcquirePolicy::retry_next_idle_then_create));
        REQUIRE(sandbox.has_value());
        CHECK(sandbox->id() == "s1");  // three candidates were tried
        CHECK(*(co_await store->count_idle("pool")) == 1);
        REQUIRE((co_await pool.shutdown()).has_value());
    });
}

TEST_CASE("a program's own check and preparation decide, and may throw") {
    Loop loop;
    FakeCloud cloud(loop);
    loop.run([&]() -> Awaitable<void> {
        auto options = quick_options(1, sdk::memory_pool_store());
        std::size_t prepared = 0;
        options.prepare = [&](sdk::Sandbox) -> Awaitable<sdk::Status> {
            if (++prepared == 1) throw std::runtime_error("not yet");
            if (prepared == 2) co_return sdk::Error(sdk::ErrorCode::internal, "no");
            co_return sdk::Status();
        };
        options.check = [](sdk::Sandbox) -> Awaitable<sdk::Result<bool>> { co_return false; };
        auto pool = open_pool(cloud, options);
        REQUIRE((co_await pool.start()).has_value());
        co_await filled(pool, 1);
        CHECK(prepared == 3);
        CHECK(cloud.created == 3);
        CHECK(cloud.deleted == 2);
        auto refused = co_await pool.acquire(AcquireOptions(AcquirePolicy::fail_fast));
        REQUIRE(refused.has_error());
        CHECK(refused.error().wire_code() == "POOL_ACQUIRE_FAILED");
        REQUIRE((co_await pool.shutdown()).has_value());
    });
}

TEST_CASE("a pool that cannot create is degraded, tries more rarely, and recovers") {
    Loop loop;
    FakeCloud cloud(loop);
    cloud.refuses = true;
    loop.run([&]() -> Awaitable<void> {
        auto pool = open_pool(cloud, quick_options(2, sdk::memory_pool_store()));
        REQUIRE((co_await pool.start()).has_value());
        sdk::PoolSnapshot shot;
        while (shot.state != PoolState::degraded || !shot.backoff_active) {
            co_await net::sleep_for(2ms);
            shot = *(co_await pool.snapshot());
        }
        CHECK(shot.failure_count >= 3);
        REQUIRE(shot.last_error);
        CHECK(shot.last_error->find("out of order") != std::string::npos);
        cloud.refuses = false;
        co_await filled(pool, 2);
        shot = *(co_await pool.snapshot());
        CHECK(shot.state == PoolState::healthy);
        CHECK(shot.failure_count == 0);
        CHECK_FALSE(shot.last_error);
        REQUIRE((co_await pool.shutdown()).has_value());
    });
}

TEST_CASE("of pools that share a store one fills it, and another when that one ends") {
    Loop loop;
    FakeCloud cloud(loop);
    loop.run([&]() -> Awaitable<void> {
        auto store = sdk::memory_pool_store();
        auto first = open_pool(cloud, quick_options(2, store));
        REQUIRE((co_await first.start()).has_value());
        co_await filled(first, 2);
        auto second = open_pool(cloud, quick_options(2, store));
        REQUIRE((co_await second.start()).has_value());
        co_await net::sleep_for(30ms);
        CHECK((co_await first.snapshot())->primary);
        CHECK_FALSE((co_await second.snapshot())->primary);
        CHECK(cloud.created == 2);
        auto sandbox = co_await second.acquire(AcquireOptions(AcquirePolicy::fail_fast));
        CHECK(sandbox.has_value());
        co_await filled(first, 2);
        REQUIRE((co_await first.shutdown()).has_value());
        REQUIRE((co_await second.resize(3)).has_value());
        co_await filled(second, 3);
        CHECK((co_await second.snapshot())->primary);
        REQUIRE((co_await second.shutdown()).has_value());
    });
}

TEST_CASE("shutting down gracefully finishes what is under way") {
    Loop loop;
    FakeCloud cloud(loop);
    cloud.slowness = 30ms;
    loop.run([&]() -> Awaitable<void> {
        auto pool = open_pool(cloud, quick_options(2, sdk::memory_pool_store()));
        REQUIRE((co_await pool.start()).has_value());
        while ((co_await pool.snapshot())->warming < 2)
            co_await net::sleep_for(1ms);
        REQUIRE((co_await pool.shutdown()).has_value());
        auto shot = co_await pool.snapshot();
        CHECK(shot->idle_count == 2);
        CHECK(cloud.deleted == 0);
    });
}

TEST_CASE("shutting down at once deletes what was being made, as dropping the pool does") {
    for (bool drop : {false, true}) {
        Loop loop;
        FakeCloud cloud(loop);
        cloud.slowness = 30ms;
        loop.run([&]() -> Awaitable<void> {
            auto store = sdk::memory_pool_store();
            auto pool =
                std::make_unique<sdk::SandboxPool>(open_pool(cloud, quick_options(2, store)));
            REQUIRE((co_await pool->start()).has_value());
            while ((co_await pool->snapshot())->warming < 2)
                co_await net::sleep_for(1ms);
            if (!drop) REQUIRE((co_await pool->shutdown(false)).has_value());
            pool.reset();
            co_await until([&] { return cloud.created == 2 && cloud.alive.empty(); });
            CHECK(*(co_await store->count_idle("pool")) == 0);
        });
    }
}

TEST_CASE("destroying a pool ends it for all who share it") {
    Loop loop;
    FakeCloud cloud(loop);
    loop.run([&]() -> Awaitable<void> {
        auto store = sdk::memory_pool_store();
        auto first = open_pool(cloud, quick_options(2, store));
        auto second = open_pool(cloud, quick_options(2, store));
        REQUIRE((co_await first.start()).has_value());
        REQUIRE((co_await second.start()).has_value());
        co_await filled(first, 2);
        auto destroyed = co_await second.destroy();
        REQUIRE(destroyed.has_value());
        CHECK(destroyed->drained == 2);
        CHECK(destroyed->killed == 2);
        CHECK(destroyed->cleared);
        CHECK(cloud.alive.empty());
        while ((co_await first.snapshot())->state != PoolState::stopped)
            co_await net::sleep_for(2ms);
        auto refused = co_await first.acquire();
        REQUIRE(refused.has_error());
        CHECK(refused.error().wire_code() == "POOL_DESTROYED");
        CHECK((co_await first.start()).error().wire_code() == "POOL_DESTROYED");
        CHECK_FALSE((co_await first.destroy())->cleared);
    });
}

TEST_CASE("a store that does not answer stops only the policies that need it") {
    Loop loop;
    FakeCloud cloud(loop);
    loop.run([&]() -> Awaitable<void> {
        std::uint16_t port = 0;
        bool answers = true;
        http::test::ScriptedServer redis(loop, [&](net::Stream& stream, int) -> Awaitable<void> {
            while (answers) {
                auto command = co_await http::test::receive_until(stream, "\r\n");
                if (command.empty()) co_return;
                // Enough to start: nothing is there, everything is allowed, nobody is primary.
                const char* reply = command.find("PING") != std::string::npos   ? "+PONG\r\n"
                                    : command.find("EVAL") != std::string::npos ? ":0\r\n"
                                                                                : "$-1\r\n";
                co_await http::test::send(stream, reply);
            }
        });
        port = redis.port;
        auto store = sdk::redis_pool_store(
            loop.executor(), sdk::RedisStoreOptions("redis://127.0.0.1:" + std::to_string(port)));
        REQUIRE(store.has_value());
        auto pool = open_pool(cloud, quick_options(2, *store));
        REQUIRE((co_await pool.start()).has_value());
        answers = false;
        co_await net::sleep_for(20ms);
        auto sandbox = co_await pool.acquire();
        CHECK(sandbox.has_value());
        auto refused = co_await pool.acquire(AcquireOptions(AcquirePolicy::fail_fast));
        REQUIRE(refused.has_error());
        CHECK(refused.error().wire_code() == "POOL_STATE_STORE_UNAVAILABLE");
        CHECK((co_await pool.snapshot()).has_error());
        REQUIRE((co_await pool.shutdown()).has_value());
    });
}

TEST_CASE("options out of range are refused by name") {
    Loop loop;
    FakeCloud cloud(loop);
    auto refused = [&](auto change) {
        auto options = quick_options(1, sdk::memory_pool_store());
        change(options);
        auto pool = sdk::SandboxPool::open(cloud.connect(), options);
        REQUIRE(pool.has_error());
        CHECK(pool.error().code() == sdk::ErrorCode::invalid_argument);
        return pool.error().message();
    };
    using sdk::PoolOptions;
    CHECK(refused([](PoolOptions& o) { o.name = " "; }).find("name") != std::string::npos);
    CHECK(refused([](PoolOptions& o) { o.store = nullptr; }).find("store") != std::string::npos);
    CHECK(refused([](PoolOptions& o) { o.warmup_concurrency = 0; }).find("warmup_concurrency") !=
          std::string::npos);
    CHECK(refused([](PoolOptions& o) { o.min_remaining = o.idle_ttl; }).find("min_remaining") !=
          std::string::npos);
    CHECK(refused([](PoolOptions& o) { o.longest_backoff = 1ms; }).find("longest_backoff") !=
          std::string::npos);
}
