#include "kube/api/client.hpp"

#include "net/task.hpp"
#include "support/scratch_directory.hpp"
#include "unit/kube/api_server.hpp"

#include <fstream>

using namespace opensandbox;
using namespace opensandbox::kube;
using namespace opensandbox::kube::testing;
using namespace std::chrono_literals;
using Catch::Contains;
using http::test::Loop;

namespace {

const std::string kPath = "/api/v1/namespaces/default/pods/";

struct World {
    explicit World(ConnectionSettings settings = hasty())
        : connection(loop.executor(), server.cluster(), std::move(settings)) {}

    Loop loop;
    ApiServer server{loop};
    Connection connection;
    Client client{connection, "tests"};
};

json::object pod(const std::string& name) {
    return {{"metadata", json::object{{"name", name}}}, {"spec", json::object{{"a", 1}}}};
}

std::string version_of(const json::object& object) {
    return std::string(object.at("metadata").at("resourceVersion").get_string());
}

}  // namespace

TEST_CASE("objects are made, read, changed and removed") {
    World world;
    world.loop.run([&]() -> Awaitable<void> {
        auto made = co_await world.client.create(kPods, "default", pod("a"));
        REQUIRE(made);
        CHECK_THAT(world.server.last_target, Contains("fieldManager=tests"));
        auto again = co_await world.client.create(kPods, "default", pod("a"));
        REQUIRE_FALSE(again);
        CHECK(again.error().wire() == "AlreadyExists");
        Patch patch;
        patch.content = json::object{{"spec", json::object{{"a", nullptr}, {"b", 2}}}};
        auto patched = co_await world.client.patch(kPods, {"default", "a"}, std::move(patch));
        REQUIRE(patched);
        CHECK(world.server.last_content_type == "application/merge-patch+json");
        CHECK(json::serialize(patched->at("spec")) == R"({"b":2})");
        auto read = co_await world.client.get(kPods, {"default", "a"});
        REQUIRE(read);
        CHECK(version_of(*read) == version_of(*patched));
        CHECK((co_await world.client.remove(kPods, {"default", "a"})).has_value());
        CHECK((co_await world.client.remove(kPods, {"default", "a"})).has_value());
        auto gone = co_await world.client.get(kPods, {"default", "a"});
        REQUIRE_FALSE(gone);
        CHECK(gone.error().code() == ErrorCode::not_found);
        CHECK_THAT(gone.error().message(), Contains("Pod default/a"));
    });
}

TEST_CASE("a write that names a version or a uid is refused when that is not there any more") {
    World world;
    world.server.put(kPath + "a", pod("a"));
    const json::object before = world.server.at(kPath + "a");
    world.server.put(kPath + "a", pod("a"));
    world.loop.run([&]() -> Awaitable<void> {
        auto replaced = co_await world.client.replace(kPods, {"default", "a"}, before);
        REQUIRE_FALSE(replaced);
        CHECK(replaced.error().wire() == "Conflict");
        Patch patch;
        patch.content =
            json::object{{"metadata", json::object{{"resourceVersion", version_of(before)}}}};
        auto patched = co_await world.client.patch(kPods, {"default", "a"}, std::move(patch));
        REQUIRE_FALSE(patched);
        CHECK(patched.error().code() == ErrorCode::conflict);
        Deletion deletion;
        deletion.uid = "another";
        auto removed = co_await world.client.remove(kPods, {"default", "a"}, std::move(deletion));
        REQUIRE_FALSE(removed);
        CHECK(removed.error().code() == ErrorCode::conflict);
    });
    CHECK(world.server.size() == 1);
}

TEST_CASE("each kind of patch has its type, and an apply its manager") {
    World world;
    world.server.put(kPath + "a", pod("a"));
    world.loop.run([&]() -> Awaitable<void> {
        Patch json_patch{PatchKind::json, json::array(), "status"};
        (void)co_await world.client.patch(kPods, {"default", "a"}, std::move(json_patch));
        CHECK(world.server.last_content_type == "application/json-patch+json");
        CHECK_THAT(world.server.last_target, Contains("/pods/a/status?"));
        Patch strategic{PatchKind::strategic, json::object(), {}};
        (void)co_await world.client.patch(kPods, {"default", "a"}, std::move(strategic));
        CHECK(world.server.last_content_type == "application/strategic-merge-patch+json");
        Apply apply{pod("a"), "me & you", true, {}};
        (void)co_await world.client.apply(kPods, {"default", "a"}, std::move(apply));
        CHECK(world.server.last_content_type == "application/apply-patch+yaml");
        CHECK_THAT(world.server.last_target, Contains("?fieldManager=me%20%26%20you&force=true"));
    });
}

TEST_CASE("a list is read page by page, anew when a page is gone") {
    World world;
    for (int i = 0; i < 5; ++i)
        world.server.put(kPath + "p" + std::to_string(i), pod("p"));
    world.server.page_size = 2;
    world.loop.run([&]() -> Awaitable<void> {
        ListChoice choice;
        choice.name_space = "default";
        choice.label_selector = "a=b,c";
        choice.selection = std::make_shared<json::Selection>(
            std::vector<std::string>{"metadata", "items.metadata.name"});
        auto all = co_await world.client.list_all(kPods, choice);
        REQUIRE(all);
        CHECK(all->items.size() == 5);
        CHECK(json::serialize(all->items.at(4)) == R"({"metadata":{"name":"p4"}})");
        CHECK(world.server.requests["LIST"] == 3);
        CHECK_THAT(world.server.last_target, Contains("labelSelector=a%3Db%2Cc"));
        CHECK(all->resource_version == world.server.version());
        choice.page_token = "expired";
        auto anew = co_await world.client.list_all(kPods, choice);
        REQUIRE(anew);
        CHECK(anew->items.size() == 5);
    });
}

TEST_CASE("what the server has not done is sent again, what it may have done only if harmless") {
    World world;
    world.loop.run([&]() -> Awaitable<void> {
        world.server.faults = {{429, "0"}, {503, "0"}};
        CHECK((co_await world.client.create(kPods, "default", pod("a"))).has_value());
        CHECK(world.server.requests["POST"] == 3);
        world.server.faults = {{0, {}}};
        auto cut = co_await world.client.create(kPods, "default", pod("b"));
        REQUIRE_FALSE(cut);
        CHECK(cut.error().code() == ErrorCode::bad_gateway);
        CHECK(world.server.requests["POST"] == 4);
        world.server.faults = {{0, {}}, {500, {}}};
        CHECK((co_await world.client.get(kPods, {"default", "a"})).has_value());
        CHECK(world.server.requests["GET"] == 3);
        // Not for ever.
        world.server.faults.assign(20, {500, {}});
        auto broken = co_await world.client.get(kPods, {"default", "a"});
        REQUIRE_FALSE(broken);
        CHECK(broken.error().message() == "Pod default/a: as told");
        CHECK(world.server.faults.size() == 15);
    });
}

TEST_CASE("a server that is silent costs its time only until that is known") {
    ConnectionSettings settings;
    settings.read_limit = 50ms;
    settings.write_limit = 50ms;
    World world(settings);
    world.loop.run([&]() -> Awaitable<void> {
        world.server.faults.assign(3, {-1, {}});
        for (int i = 0; i < 3; ++i) {
            auto late = co_await world.client.get(kPods, {"default", "a"});
            REQUIRE_FALSE(late);
            CHECK(late.error().code() == ErrorCode::timeout);
        }
        CHECK(world.connection.is_cut_off());
        auto refused = co_await world.client.get(kPods, {"default", "a"});
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == ErrorCode::unavailable);
        CHECK(world.server.requests["GET"] == 3);
        // It is found when it is there again.
        while (world.connection.is_cut_off()) {
            (void)co_await world.client.get(kPods, {"default", "a"});
            co_await net::sleep_for(20ms);
        }
        CHECK(world.server.requests["GET"] == 4);
    });
}

TEST_CASE("a server that is not there is unavailable") {
    Loop loop;
    Cluster nowhere;
    nowhere.server = "http://127.0.0.1:1";
    ConnectionSettings settings;
    settings.read_limit = 200ms;
    Connection connection(loop.executor(), nowhere, settings);
    Client client(connection, "tests");
    loop.run([&]() -> Awaitable<void> {
        auto read = co_await client.get(kPods, {"default", "a"});
        REQUIRE_FALSE(read);
        CHECK(read.error().code() == ErrorCode::unavailable);
        CHECK_THAT(read.error().message(), Contains("http://127.0.0.1:1"));
    });
}

TEST_CASE("the path of the server's address comes before every other") {
    Loop loop;
    std::string target;
    http::test::TestServer server(loop, [&](http::Exchange& exchange) -> Awaitable<void> {
        target = exchange.request().target;
        co_await exchange.respond(http::json_response(200, "{}"));
    });
    Cluster cluster;
    cluster.server = "http://127.0.0.1:" + std::to_string(server.port) + "/k8s/clusters/c1";
    Connection connection(loop.executor(), cluster);
    Client client(connection, "tests");
    loop.run([&]() -> Awaitable<void> {
        CHECK((co_await client.get(kPods, {"default", "a"})).has_value());
    });
    CHECK(target == "/k8s/clusters/c1/api/v1/namespaces/default/pods/a");
}

TEST_CASE("a token that was refused is read again, once") {
    World world;
    test_support::ScratchDirectory scratch;
    std::ofstream(scratch.path / "token") << "old\n";
    Cluster cluster = world.server.cluster();
    cluster.token_file = scratch.path / "token";
    Connection connection(world.loop.executor(), cluster, hasty());
    Client client(connection, "tests");
    world.server.put(kPath + "a", pod("a"));
    world.loop.run([&]() -> Awaitable<void> {
        world.server.expected_authorization = "Bearer old";
        CHECK((co_await client.get(kPods, {"default", "a"})).has_value());
        world.server.expected_authorization = "Bearer new";
        std::ofstream(scratch.path / "token") << "new\n";
        CHECK((co_await client.get(kPods, {"default", "a"})).has_value());
        CHECK(world.server.requests["GET"] == 3);
        world.server.expected_authorization = "Bearer other";
        auto refused = co_await client.get(kPods, {"default", "a"});
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == ErrorCode::unauthenticated);
        CHECK(world.server.requests["GET"] == 5);
    });
}
