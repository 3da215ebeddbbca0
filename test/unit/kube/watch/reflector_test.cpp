#include "kube/watch/reflector.hpp"

#include "kube/watch/cache.hpp"
#include "net/task.hpp"
#include "unit/kube/api_server.hpp"

using namespace opensandbox;
using namespace opensandbox::kube;
using namespace opensandbox::kube::testing;
using namespace std::chrono_literals;
using http::test::Loop;

namespace {

const std::string kPath = "/api/v1/namespaces/default/pods/";

struct Thing {
    Metadata metadata;
    std::int64_t value = 0;
};

Result<Thing> read_thing(const json::object& object) {
    auto metadata = read_metadata(object);
    if (!metadata) return metadata.error();
    auto value = json::get_integer(object, "value");
    if (!value) return value.error();
    return Thing{std::move(*metadata), value->value_or(0)};
}

json::object thing(std::int64_t value) {
    return {{"value", value}, {"unused", "text"}};
}

/// A server, and a cache that follows it.
struct World {
    explicit World(std::chrono::milliseconds silence = 60s) {
        choice.resource = kPods;
        choice.name_space = "default";
        choice.members = {"value"};
        choice.silence = silence;
    }
    ~World() {
        if (!reflector) return;
        reflector->stop();
        loop.run([&]() -> Awaitable<void> {
            while (!ended)
                co_await net::sleep_for(1ms);
        });
    }

    void follow() {
        reflector.emplace(client, choice, cache);
        net::spawn(loop.executor(), run(), "reflector");
    }
    Awaitable<void> run() {
        co_await reflector->run();
        ended = true;
    }
    void until(std::function<bool()> condition) {
        loop.run([&]() -> Awaitable<void> {
            while (!condition())
                co_await net::sleep_for(1ms);
        });
    }
    [[nodiscard]] std::int64_t value(const std::string& name) const {
        const auto found = cache.find({"", name});
        return found ? found->value : -1;
    }

    Loop loop;
    ApiServer server{loop};
    Connection connection{loop.executor(), server.cluster(), hasty()};
    Client client{connection, "tests"};
    WatchChoice choice;
    Cache<Thing> cache{"things", read_thing};
    std::optional<Reflector> reflector;
    bool ended = false;
};

}  // namespace

TEST_CASE("a cache has what is there and follows what becomes of it, by one request or by two") {
    World world;
    world.server.streams_lists = GENERATE(true, false);
    world.server.put(kPath + "a", thing(1));
    world.server.put(kPath + "b", thing(2));
    world.server.put("/api/v1/namespaces/other/pods/c", thing(3));
    std::vector<std::string> told;
    world.cache.listen([&](const auto& before, const auto& after) {
        const auto& object = after ? after : before;
        told.push_back((!before ? "+" : !after ? "-" : "~") + object->metadata.name);
    });
    CHECK_FALSE(world.cache.is_complete());
    world.follow();
    world.until([&] { return world.cache.is_complete() && world.reflector->follows(); });
    CHECK(world.cache.objects().size() == 2);
    CHECK(world.value("b") == 2);
    world.server.put(kPath + "a", thing(10));
    world.server.put(kPath + "d", thing(4));
    world.server.erase(kPath + "b");
    world.until([&] { return world.value("b") == -1; });
    CHECK(world.value("a") == 10);
    CHECK(world.value("d") == 4);
    CHECK(told == std::vector<std::string>{"+a", "+b", "~a", "+d", "-b"});
    CHECK(world.server.requests["LIST"] == (world.server.streams_lists ? 0 : 1));
}

TEST_CASE("a watch that is cut goes on where it was") {
    World world;
    world.server.put(kPath + "a", thing(1));
    world.follow();
    world.until([&] { return world.value("a") == 1; });
    world.server.cut_watches();
    world.server.put(kPath + "a", thing(2));
    world.server.put(kPath + "b", thing(3));
    world.until([&] { return world.value("a") == 2 && world.value("b") == 3; });
    CHECK(world.server.requests["LIST"] == 0);
}

TEST_CASE("what went while the watch was too far behind is gone after it") {
    World world;
    world.server.streams_lists = GENERATE(true, false);
    world.server.put(kPath + "a", thing(1));
    world.server.put(kPath + "b", thing(2));
    world.follow();
    world.until([&] { return world.value("b") == 2; });
    world.server.cut_watches();
    world.server.erase(kPath + "a");
    world.server.put(kPath + "c", thing(3));
    world.server.compact();
    world.until([&] { return world.value("c") == 3 && world.value("a") == -1; });
    CHECK(world.value("b") == 2);
}

TEST_CASE("a bookmark moves the place from which a watch goes on") {
    World world;
    world.server.put(kPath + "a", thing(1));
    world.follow();
    world.until([&] { return world.reflector->follows(); });
    for (int i = 0; i < 5; ++i)
        world.server.put("/api/v1/namespaces/other/pods/x", thing(i));
    world.server.bookmark();
    // Everything up to there may be forgotten.
    world.until([&] { return world.server.requests["WATCH"] == 1; });
    world.loop.run([&]() -> Awaitable<void> { co_await net::sleep_for(50ms); });
    world.server.compact();
    world.server.cut_watches();
    world.server.put(kPath + "a", thing(2));
    world.until([&] { return world.value("a") == 2; });
    CHECK(world.server.requests["WATCH"] == 2);
}

TEST_CASE("a stream in which nothing comes is begun anew") {
    World world(30ms);
    world.server.put(kPath + "a", thing(1));
    world.follow();
    world.until([&] { return world.server.requests["WATCH"] >= 3; });
    CHECK(world.value("a") == 1);
}

TEST_CASE("a server that ends every stream at once is not asked all the time") {
    World world;
    world.server.ends_watches = true;
    world.follow();
    world.loop.run([&]() -> Awaitable<void> { co_await net::sleep_for(1s); });
    CHECK(world.server.requests["WATCH"] >= 1);
    CHECK(world.server.requests["WATCH"] < 12);
}

TEST_CASE("what cannot be read is left out, and the rest is there") {
    World world;
    world.server.put(kPath + "a", json::object{{"value", "text"}});
    world.server.put(kPath + "b", thing(2));
    world.follow();
    world.until([&] { return world.cache.is_complete(); });
    CHECK(world.value("a") == -1);
    CHECK(world.value("b") == 2);
}
