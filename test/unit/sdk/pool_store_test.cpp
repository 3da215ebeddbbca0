#include "opensandbox/pool_store.hpp"

#include "redis/resp.hpp"
#include "sdk/redis_pool_store.hpp"
#include "support/http_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using opensandbox::http::test::Loop;
using opensandbox::http::test::ScriptedServer;
using namespace std::chrono_literals;

TEST_CASE("idle sandboxes are taken oldest first, and not when too little of their time is left") {
    Loop loop;
    loop.run([]() -> Awaitable<void> {
        auto store = sdk::memory_pool_store();
        REQUIRE((co_await store->set_idle_ttl("p", 60s)).has_value());
        REQUIRE((co_await store->put_idle("p", "short")).has_value());
        REQUIRE((co_await store->set_idle_ttl("p", 1h)).has_value());
        for (const char* id : {"a", "b", "a"})
            REQUIRE((co_await store->put_idle("p", id)).has_value());
        CHECK(*(co_await store->count_idle("p")) == 3);
        CHECK(*(co_await store->count_idle("other")) == 0);
        auto entries = co_await store->idle_entries("p");
        REQUIRE(entries->size() == 3);
        CHECK((*entries)[1].sandbox_id == "a");
        CHECK((*entries)[1].expires_at - (*entries)[0].expires_at > 58min);

        auto taken = co_await store->take_idle("p", 2min);
        CHECK(taken->sandbox_id == "a");
        CHECK(taken->discarded == std::vector<std::string>{"short"});
        REQUIRE((co_await store->remove_idle("p", "b")).has_value());
        taken = co_await store->take_idle("p", 0ms);
        CHECK_FALSE(taken->sandbox_id);

        REQUIRE((co_await store->put_idle("p", "c")).has_value());
        CHECK((co_await store->reap_expired("p", 2min))->empty());
        CHECK(*(co_await store->reap_expired("p", 2h)) == std::vector<std::string>{"c"});
        CHECK(*(co_await store->count_idle("p")) == 0);
    });
}

TEST_CASE("what has expired is neither counted nor given out nor deleted") {
    Loop loop;
    loop.run([]() -> Awaitable<void> {
        auto store = sdk::memory_pool_store();
        REQUIRE((co_await store->set_idle_ttl("p", 1ms)).has_value());
        REQUIRE((co_await store->put_idle("p", "a")).has_value());
        co_await net::sleep_for(5ms);
        CHECK(*(co_await store->count_idle("p")) == 0);
        auto taken = co_await store->take_idle("p", 1min);
        CHECK_FALSE(taken->sandbox_id);
        CHECK(taken->discarded.empty());
    });
}

TEST_CASE("one owner has the lock until it lets go or its time has passed") {
    Loop loop;
    loop.run([]() -> Awaitable<void> {
        auto store = sdk::memory_pool_store();
        CHECK_FALSE(*(co_await store->renew_primary_lock("p", "a", 1h)));
        CHECK(*(co_await store->acquire_primary_lock("p", "a", 1h)));
        CHECK(*(co_await store->acquire_primary_lock("p", "a", 1h)));
        CHECK_FALSE(*(co_await store->acquire_primary_lock("p", "b", 1h)));
        CHECK_FALSE(*(co_await store->renew_primary_lock("p", "b", 1h)));
        REQUIRE((co_await store->release_primary_lock("p", "b")).has_value());
        CHECK(*(co_await store->renew_primary_lock("p", "a", 1h)));
        REQUIRE((co_await store->release_primary_lock("p", "a")).has_value());
        CHECK(*(co_await store->acquire_primary_lock("p", "b", 1ms)));
        co_await net::sleep_for(5ms);
        CHECK(*(co_await store->acquire_primary_lock("p", "c", 1h)));
    });
}

TEST_CASE("a name that is being destroyed takes nothing, and is free again after its time") {
    Loop loop;
    loop.run([]() -> Awaitable<void> {
        auto store = sdk::memory_pool_store();
        REQUIRE((co_await store->put_idle("p", "a")).has_value());
        REQUIRE((co_await store->set_max_idle("p", 7)).has_value());
        CHECK(*(co_await store->max_idle("p")) == std::optional<std::size_t>(7));
        REQUIRE((co_await store->begin_destroy("p", "me")).has_value());
        CHECK(*(co_await store->destroy_state("p")) == sdk::PoolDestroyState::destroying);
        auto refused = co_await store->put_idle("p", "b");
        REQUIRE(refused.has_error());
        CHECK(refused.error().wire_code() == "POOL_DESTROYED");
        CHECK((co_await store->set_max_idle("p", 1)).has_error());
        CHECK_FALSE(*(co_await store->acquire_primary_lock("p", "me", 1h)));
        CHECK((co_await store->take_idle("p", 0ms))->sandbox_id == "a");
        REQUIRE((co_await store->clear("p")).has_value());
        CHECK(*(co_await store->max_idle("p")) == std::nullopt);
        REQUIRE((co_await store->mark_destroyed("p", "me", 20ms)).has_value());
        CHECK((co_await store->begin_destroy("p", "me")).has_error());
        co_await net::sleep_for(30ms);
        CHECK(*(co_await store->destroy_state("p")) == sdk::PoolDestroyState::active);
        CHECK((co_await store->put_idle("p", "b")).has_value());
    });
}

TEST_CASE("keys in Redis are those of the published SDKs") {
    CHECK(sdk::redis_pool_key("opensandbox:pool", "demo", "lock") ==
          "opensandbox:pool:{ZGVtbw}:lock");
    CHECK(sdk::redis_pool_key("x", "a", "idle:list") == "x:{YQ}:idle:list");
    CHECK(sdk::redis_pool_key("x", "abc", "maxIdle") == "x:{YWJj}:maxIdle");
    CHECK(sdk::redis_pool_key("x", "\xfb\xff\xfe?", "lock") == "x:{-__-Pw}:lock");
}

TEST_CASE("a store in Redis connects again, and says when it cannot") {
    Loop loop;
    std::vector<std::string> asked;
    ScriptedServer redis(loop, [&](net::Stream& stream, int number) -> Awaitable<void> {
        auto greeting = co_await http::test::receive_until(stream, "PING\r\n");
        co_await http::test::send(stream, "+PONG\r\n");
        auto command = co_await http::test::receive_until(stream, "destroy:state\r\n");
        asked.push_back(command);
        const char* replies[] = {"$10\r\nDESTROYING\r\n", "$-1\r\n", ":1\r\n", "-LOADING\r\n"};
        if (number <= 4) co_await http::test::send(stream, replies[number - 1]);
    });
    loop.run([&]() -> Awaitable<void> {
        sdk::RedisStoreOptions options("redis://127.0.0.1:" + std::to_string(redis.port));
        options.timeout = 200ms;
        auto store = sdk::redis_pool_store(loop.executor(), options);
        REQUIRE(store.has_value());
        CHECK(*(co_await (*store)->destroy_state("p")) == sdk::PoolDestroyState::destroying);
        co_await net::sleep_for(20ms);  // the server has closed the connection
        CHECK(*(co_await (*store)->destroy_state("p")) == sdk::PoolDestroyState::active);
        for (int i = 0; i < 3; ++i) {  // another kind of reply, an error, none at all
            co_await net::sleep_for(20ms);
            auto failed = co_await (*store)->destroy_state("p");
            REQUIRE(failed.has_error());
            CHECK(failed.error().wire_code() == "POOL_STATE_STORE_UNAVAILABLE");
            CHECK(failed.error().code() == sdk::ErrorCode::unavailable);
        }
    });
    CHECK(redis.connections == 5);
    CHECK(asked.at(0) == redis::resp::command({"GET", "opensandbox:pool:{cA}:destroy:state"}));
}

TEST_CASE("addresses of Redis are checked before anything is asked") {
    Loop loop;
    for (const char* url :
         {"", "localhost", "http://h", "redis://", "redis://h:0", "redis://h/x"}) {
        INFO(url);
        auto store = sdk::redis_pool_store(loop.executor(), sdk::RedisStoreOptions(url));
        REQUIRE(store.has_error());
        CHECK(store.error().code() == sdk::ErrorCode::invalid_argument);
        CHECK(store.error().message().find("redis://") != std::string::npos);
    }
    auto tls = sdk::redis_pool_store(loop.executor(), sdk::RedisStoreOptions("rediss://h"));
    CHECK(tls.error().code() == sdk::ErrorCode::unsupported);
    sdk::RedisStoreOptions options;
    options.key_prefix = "";
    CHECK(sdk::redis_pool_store(loop.executor(), options).has_error());
}
