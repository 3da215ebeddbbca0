#include "fake_registry.hpp"
#include "registry/blobs.hpp"

using namespace opensandbox;
using namespace opensandbox::registry::test;

TEST_CASE("what was pushed is pulled again") {
    Loop loop;
    FakeRegistry from(loop), to(loop);
    Puller puller(loop), other(loop);
    add_image(from, "1", {noise(100'000), "small"});
    to.chunk_cut = 50'000;  // in the middle of the second chunk
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(from.name("app:1"), std::nullopt);
        REQUIRE(pulled);
        auto pushed =
            co_await puller.registries->push(from.name("app:1"), to.name("copy:2"), std::nullopt);
        REQUIRE(pushed);
        CHECK(pushed->reference == to.name("copy:2"));
        auto back = co_await other.registries->pull(to.name("copy:2"), std::nullopt);
        REQUIRE(back);
        CHECK(back->digest == pushed->digest);
    });
    CHECK(to.chunk_cut == 0);
    CHECK(other.content(to.name("copy:2"), "file0") == noise(100'000));
    CHECK(other.content(to.name("copy:2"), "file1") == "small");
    CHECK(other.store->resolve(to.name("copy:2"))->config.env.front().second == "here");
}

TEST_CASE("a pushed image keeps its digest where the registry has its blobs") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    std::string digest = add_image(fake, "1", {"below", "above"});
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        REQUIRE(pulled);
        auto pushed =
            co_await puller.registries->push(fake.name("app:1"), fake.name("app:2"), std::nullopt);
        REQUIRE(pushed);
        CHECK(pushed->digest == digest);
    });
    CHECK(fake.count("PATCH", "") == 0);
    CHECK(fake.manifests["2"] == fake.manifests["1"]);
}

TEST_CASE("a layer is taken from another repository of the registry") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    std::string digest = add_image(fake, "1", {"below", "above"});
    // The other repository has nothing until it is mounted.
    std::map<std::string, bool> there;
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        const std::string& target = x.request().target;
        if (x.request().method == "POST") {
            http::Query query(x.request().query());
            auto mount = query.get("mount");
            if (mount) there[std::string(*mount)] = true;
            co_return false;
        }
        if (x.request().method != "HEAD" || target.find("/two/") == std::string::npos) {
            co_return false;
        }
        if (there[target.substr(target.rfind('/') + 1)]) co_return false;
        http::Response response(404);
        co_await x.respond(std::move(response));
        co_return true;
    };
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("one/app:1"), std::nullopt);
        REQUIRE(pulled);
        auto pushed = co_await puller.registries->push(fake.name("one/app:1"),
                                                       fake.name("two/app:1"), std::nullopt);
        REQUIRE(pushed);
        CHECK(pushed->digest == digest);
    });
    CHECK(there.size() == 3);  // two layers; the config was looked for
    CHECK(fake.count("POST", "from=one/app") == 2);
}

TEST_CASE("only a stored image is pushed, and to a tag") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    loop.run([&]() -> Awaitable<void> {
        auto unknown = co_await puller.registries->push(fake.name("app:1"), "", std::nullopt);
        REQUIRE_FALSE(unknown);
        CHECK(unknown.error().code() == ErrorCode::not_found);
        auto digest = fake.name("app@sha256:" + std::string(64, 'a'));
        auto by_digest = co_await puller.registries->push(fake.name("app:1"), digest, std::nullopt);
        REQUIRE_FALSE(by_digest);
        CHECK(by_digest.error().code() == ErrorCode::invalid_argument);
    });
    CHECK(fake.seen.empty());
}

TEST_CASE("ranges of answers are read") {
    CHECK(registry::range_start("bytes 5-9/10") == 5U);
    CHECK(registry::range_start("bytes 0-9/*") == 0U);
    for (const char* text : {"", "5-9/10", "bytes -9/10", "bytes x", "bytes 5", "bytes 5 -9"}) {
        CAPTURE(text);
        CHECK_FALSE(registry::range_start(text));
    }
    CHECK(registry::uploaded_bytes("0-9") == 10U);
    CHECK(registry::uploaded_bytes("bytes=0-0") == 1U);
    for (const char* text : {"", "1-9", "0-", "0-9x", "0"}) {
        CAPTURE(text);
        CHECK_FALSE(registry::uploaded_bytes(text));
    }
}
