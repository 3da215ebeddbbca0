#include "fake_registry.hpp"

using namespace opensandbox;
using namespace opensandbox::registry::test;

TEST_CASE("an image is pulled, and only what is missing is fetched") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    std::string digest = add_image(fake, "1", {"below", "above"});
    std::string reference = fake.name("team/app:1");
    std::map<std::string, std::string> states;
    auto watcher = std::make_shared<registry::ProgressListener>(
        [&](const registry::LayerProgress& p) { states[p.layer] = registry::to_string(p.status); });
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(reference, std::nullopt, watcher);
        REQUIRE(pulled);
        CHECK(pulled->digest == digest);
        CHECK(pulled->reference == reference);
    });
    CHECK(puller.content(reference, "file0") == "below");
    CHECK(puller.content(reference, "file1") == "above");
    CHECK(puller.store->resolve(reference)->config.env.front().second == "here");
    REQUIRE(states.size() == 2);
    for (const auto& [layer, state] : states)
        CHECK(state == "done");

    // The next one shares its first layer.
    add_image(fake, "2", {"below", "other"});
    std::size_t before = fake.count("GET", "/blobs/");
    loop.run([&]() -> Awaitable<void> {
        auto next = co_await puller.registries->pull(fake.name("team/app:2"), std::nullopt);
        CHECK(next);
    });
    CHECK(fake.count("GET", "/blobs/") == before + 2);  // config and one layer

    // By digest, everything is there.
    before = fake.count("GET", "/blobs/");
    loop.run([&]() -> Awaitable<void> {
        auto same = co_await puller.registries->pull(fake.name("team/app@" + digest), std::nullopt);
        REQUIRE(same);
        CHECK(same->digest == digest);
    });
    CHECK(fake.count("GET", "/blobs/") == before + 1);
}

TEST_CASE("a connection that is cut in a layer is taken up where it broke") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {noise(300'000)});
    int cuts = 2;
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        std::string path(x.request().path());
        auto at = path.find("/blobs/sha256:");
        if (at == std::string::npos || cuts == 0) co_return false;
        const std::string& blob = fake.blobs[path.substr(at + 14)];
        if (blob.size() < 100'000) co_return false;  // the config
        --cuts;
        std::size_t start = 0;
        http::ResponseHead head(200);
        if (auto range = x.request().fields.get("Range")) {
            start = std::stoul(std::string(range->substr(6)));
            head.status = 206;
            head.fields.set("Content-Range", "bytes " + std::to_string(start) + "-" +
                                                 std::to_string(blob.size() - 1) + "/" +
                                                 std::to_string(blob.size()));
        }
        head.fields.set("Content-Length", std::to_string(blob.size() - start));
        auto started = co_await x.start(std::move(head));
        if (started) started = co_await x.write(std::string_view(blob).substr(start, 50'000));
        co_return true;
    };
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        CHECK(pulled);
    });
    CHECK(puller.content(fake.name("app:1"), "file0") == noise(300'000));
    std::vector<std::string> ranges;
    for (const auto& one : fake.seen) {
        if (auto range = one.fields.get("Range")) ranges.emplace_back(*range);
    }
    CHECK(ranges == std::vector<std::string>{"bytes=50000-", "bytes=100000-"});
}

TEST_CASE("a registry that does not know ranges sends all again") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {noise(100'000)});
    int requests = 0;
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        std::string path(x.request().path());
        auto at = path.find("/blobs/sha256:");
        if (at == std::string::npos) co_return false;
        const std::string& blob = fake.blobs[path.substr(at + 14)];
        if (blob.size() < 50'000) co_return false;
        http::Fields fields{{"Content-Length", std::to_string(blob.size())}};
        http::ResponseHead head(200, std::move(fields));
        auto started = co_await x.start(std::move(head));
        std::size_t part = ++requests == 1 ? 20'000 : blob.size();
        started = co_await x.write(std::string_view(blob).substr(0, part));
        if (part == blob.size()) started = co_await x.finish();
        co_return true;
    };
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        CHECK(pulled);
    });
    CHECK(requests == 2);
    CHECK(puller.content(fake.name("app:1"), "file0") == noise(100'000));
}

TEST_CASE("bytes of another digest are refused and leave nothing") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {noise(50'000)});
    std::string what;
    SECTION("a layer") {
        for (auto& [hex, blob] : fake.blobs) {
            if (blob.size() > 10'000) blob[5'000] ^= 1;
        }
        what = "the registry sent bytes of digest";
    }
    SECTION("a layer that is too long") {
        for (auto& [hex, blob] : fake.blobs) {
            if (blob.size() > 10'000) blob += "more";
        }
        what = "more bytes came";
    }
    SECTION("a layer that is too short") {
        for (auto& [hex, blob] : fake.blobs) {
            if (blob.size() > 10'000) blob.resize(10'000);
        }
        what = "only 10000 bytes came";
    }
    SECTION("the config") {
        for (auto& [hex, blob] : fake.blobs) {
            if (blob.starts_with("{")) blob += " ";
        }
        what = "config: the registry sent bytes of digest";
    }
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        REQUIRE_FALSE(pulled);
        CHECK_THAT(pulled.error().message(), Catch::Contains(what));
        CHECK_THAT(pulled.error().message(), Catch::Contains("127.0.0.1"));
    });
    CHECK(puller.is_clean());
}

TEST_CASE("a manifest of another digest than asked is refused") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    std::string digest = add_image(fake, "1", {"x"});
    add_image(fake, "2", {"y"});
    fake.manifests[digest] = fake.manifests["2"];
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app@" + digest), std::nullopt);
        REQUIRE_FALSE(pulled);
        CHECK(pulled.error().code() == ErrorCode::invalid_argument);
    });
    CHECK(puller.is_clean());
}

TEST_CASE("the entry of an index for this platform is taken") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    std::string digest = add_image(fake, "mine", {"mine"});
    std::string other = add_image(fake, "other", {"other"});
    std::string arch(image::machine_architecture());
    auto entry = [&](const std::string& of, const std::string& os, const std::string& cpu,
                     const std::string& variant) {
        return R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":")" + of +
               R"(","size":)" + std::to_string(fake.manifests[of].second.size()) +
               R"(,"platform":{"os":")" + os + R"(","architecture":")" + cpu + R"(","variant":")" +
               variant + R"("}})";
    };
    std::string plain = arch == "arm64" ? "v8" : "v1";
    std::string index = R"({"schemaVersion":2,"manifests":[)" + entry(other, "windows", arch, "") +
                        "," + entry(other, "linux", "riscv64", "") + "," +
                        entry(other, "linux", arch, "v9") + "," +
                        entry(digest, "linux", arch, plain) + "]}";
    fake.manifests["all"] = {"application/vnd.oci.image.index.v1+json", index};
    fake.manifests["untyped"] = {"application/json", index};
    fake.manifests["none"] = {"application/vnd.docker.distribution.manifest.list.v2+json",
                              R"({"manifests":[)" + entry(other, "linux", "riscv64", "") + "]}"};
    loop.run([&]() -> Awaitable<void> {
        for (std::string tag : {"all", "untyped"}) {
            auto pulled = co_await puller.registries->pull(fake.name("app:" + tag), std::nullopt);
            REQUIRE(pulled);
            CHECK(pulled->digest == digest);
        }
        auto none = co_await puller.registries->pull(fake.name("app:none"), std::nullopt);
        REQUIRE_FALSE(none);
        CHECK(none.error().code() == ErrorCode::unsupported);
        CHECK_THAT(none.error().message(), Catch::Contains("linux/riscv64"));
    });
}

TEST_CASE("a busy registry is asked again when it says so") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {"x"});
    std::map<std::string, int> asked;
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        int number = ++asked[x.request().target];
        if (number > 2 || x.request().path() == "/v2/") co_return false;
        http::Response response(number == 1 ? 429 : 503);
        response.head.fields.set("Retry-After", "0");
        co_await x.respond(std::move(response));
        co_return true;
    };
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        CHECK(pulled);
    });
    CHECK(asked.size() >= 3);
}

TEST_CASE("a registry that stays busy is given up") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    std::string wait;
    std::size_t times = 0;
    SECTION("after some attempts") {
        wait = "0";
        times = 5;
    }
    SECTION("at once when it asks for hours") {
        wait = "7200";
        times = 1;
    }
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        if (x.request().path() == "/v2/") co_return false;
        http::Response response(429);
        response.head.fields.set("Retry-After", wait);
        co_await x.respond(std::move(response));
        co_return true;
    };
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        REQUIRE_FALSE(pulled);
        CHECK(pulled.error().code() == ErrorCode::resource_exhausted);
    });
    CHECK(fake.count("GET", "/manifests/") == times);
}

TEST_CASE("pulls of one image at a time are one") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {"x"});
    int ended = 0;
    auto pull = [&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt);
        CHECK(pulled);
        ++ended;
    };
    loop.run([&]() -> Awaitable<void> {
        for (int i = 0; i < 5; ++i)
            net::spawn(loop.executor(), pull(), "pull");
        while (ended < 5)
            co_await net::sleep_for(std::chrono::milliseconds(1));
    });
    CHECK(fake.count("GET", "/manifests/1") == 1);
}

TEST_CASE("a pull ends when the last of those who wait for it leave, also of a silent registry") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    add_image(fake, "1", {noise(300'000)});
    bool in_layer = false, cut = false;
    fake.intercept = [&](http::Exchange& x) -> Awaitable<bool> {
        std::string path(x.request().path());
        auto at = path.find("/blobs/sha256:");
        if (at == std::string::npos) co_return false;
        const std::string& blob = fake.blobs[path.substr(at + 14)];
        if (blob.size() < 100'000) co_return false;  // the config
        http::ResponseHead head(200);
        head.fields.set("Content-Length", std::to_string(blob.size()));
        (void)co_await x.start(std::move(head));
        (void)co_await x.write(std::string_view(blob).substr(0, 50'000));
        in_layer = true;
        co_await x.client_gone();
        cut = true;
        co_return true;
    };
    std::stop_source first, second;
    std::optional<Error> first_end, second_end;
    auto pull = [&](std::stop_token stop, std::optional<Error>& end) -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:1"), std::nullopt, nullptr,
                                                       std::move(stop));
        REQUIRE_FALSE(pulled);
        end = pulled.error();
    };
    loop.run([&]() -> Awaitable<void> {
        constexpr std::chrono::milliseconds step(1);
        net::spawn(loop.executor(), pull(first.get_token(), first_end), "first");
        net::spawn(loop.executor(), pull(second.get_token(), second_end), "second");
        while (!in_layer)
            co_await net::sleep_for(step);
        first.request_stop();
        while (!first_end)
            co_await net::sleep_for(step);
        CHECK(first_end->code() == ErrorCode::cancelled);
        co_await net::sleep_for(std::chrono::milliseconds(20));
        CHECK_FALSE(second_end);
        CHECK_FALSE(cut);
        second.request_stop();
        while (!second_end || !cut)
            co_await net::sleep_for(step);
        CHECK(second_end->code() == ErrorCode::cancelled);
        co_await puller.registries->stop(std::chrono::seconds(10));
    });
    CHECK(puller.is_clean());
}

TEST_CASE("an image that the registry does not have is not found") {
    Loop loop;
    FakeRegistry fake(loop);
    Puller puller(loop);
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await puller.registries->pull(fake.name("app:none"), std::nullopt);
        REQUIRE_FALSE(pulled);
        CHECK(pulled.error().code() == ErrorCode::not_found);
        CHECK_THAT(pulled.error().message(), Catch::Contains("manifest unknown"));
        CHECK_THAT(pulled.error().message(), Catch::Contains("app:none"));
        auto host = co_await puller.registries->pull("host", std::nullopt);
        CHECK_FALSE(host);
    });
    CHECK(puller.is_clean());
}
