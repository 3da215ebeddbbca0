#include "docker_fake_engine.hpp"
#include "support/body_text.hpp"

using namespace opensandbox;
using namespace opensandbox::runtime::docker;
using namespace std::chrono_literals;
using test::FakeEngine;
using test_support::Loop;

namespace {

std::string frame(char source, const std::string& content) {
    std::string head(8, '\0');
    head[0] = source;
    head[6] = static_cast<char>(content.size() >> 8U);
    head[7] = static_cast<char>(content.size() & 0xffU);
    return head + content;
}

struct Fixture {
    Loop loop;
    FakeEngine fake{loop};
    Engine engine{loop.executor(), fake.address()};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "the version is agreed on once, at the first call") {
    fake.on("GET /info", 200, R"({"OSType":"linux"})");
    loop.run([&]() -> Awaitable<void> {
        auto first = co_await engine.info();
        auto second = co_await engine.info();
        CHECK(first);
        CHECK(second);
    });
    CHECK(fake.count("GET /version") == 1);
    CHECK(fake.count("GET /v1.41/info") == 2);
}

TEST_CASE("the version is the older of ours and the engine's, or its oldest where that is newer") {
    auto [newest, oldest, used] = GENERATE(table<std::string, std::string, std::string>({
        {"1.41", "1.12", "1.41"},
        {"1.47", "1.24", "1.41"},
        {"1.30", "1.12", "1.30"},
        {"1.24", "", "1.24"},
        {"1.51", "1.44", "1.44"},
    }));
    Loop loop;
    FakeEngine fake(loop);
    fake.version = test::version_document(newest, oldest);
    fake.on("GET /info", 200, "{}");
    Engine engine(loop.executor(), fake.address());
    loop.run([&]() -> Awaitable<void> {
        auto info = co_await engine.info();
        CHECK(info);
    });
    CHECK(fake.last().request == "GET /v" + used + "/info");
}

TEST_CASE("an engine that is too old or too new is refused in words") {
    Loop loop;
    FakeEngine fake(loop);
    bool old = GENERATE(true, false);
    fake.version =
        old ? test::version_document("1.23", "1.10") : test::version_document("1.99", "1.90");
    Engine engine(loop.executor(), fake.address());
    loop.run([&]() -> Awaitable<void> {
        auto info = co_await engine.info();
        REQUIRE_FALSE(info);
        CHECK(info.error().code() == ErrorCode::unavailable);
        std::string reason = old ? "speaks API version 1.23, but 1.24 or newer is needed"
                                 : "speaks no API version of 1.51 or older";
        CHECK(info.error().message() ==
              "the Docker engine at unix://" + fake.path() + ": " + reason);
    });
    CHECK(fake.count("GET /version") == 1);
}

TEST_CASE_METHOD(Fixture, "a container is created with its name, platform and document") {
    fake.on("POST /containers/create?name=sandbox-1&platform=linux%2Farm64", 201,
            R"({"Id":"c1","Warnings":["slow"]})");
    loop.run([&]() -> Awaitable<void> {
        json::object body;
        body["Image"] = "busybox:1";
        auto created = co_await engine.create_container("sandbox-1", body, "linux/arm64");
        REQUIRE(created);
        CHECK(created->id == "c1");
        CHECK(created->warnings == std::vector<std::string>{"slow"});
    });
    CHECK(fake.last().body == R"({"Image":"busybox:1"})");
    CHECK(fake.last().fields.get("Content-Type") == "application/json");
}

TEST_CASE_METHOD(Fixture, "an old engine is not sent a platform that it would overlook") {
    fake.version = test::version_document("1.40");
    loop.run([&]() -> Awaitable<void> {
        json::object body;
        auto created = co_await engine.create_container("sandbox-1", body, "linux/arm64");
        REQUIRE_FALSE(created);
        CHECK(created.error().code() == ErrorCode::unsupported);
    });
    CHECK(fake.asked.size() == 1);
}

TEST_CASE_METHOD(Fixture, "what is so already is no failure") {
    fake.on("POST /containers/c1/start", 304);
    fake.on("POST /containers/c1/stop?t=3", 304);
    fake.on("DELETE /containers/c1?force=1&v=1", 404, R"({"message":"No such container: c1"})");
    fake.on("DELETE /images/repo%20x:tag", 404, R"({"message":"No such image"})");
    fake.on("DELETE /volumes/v?force=1", 404, R"({"message":"no such volume"})");
    loop.run([&]() -> Awaitable<void> {
        auto done1 = co_await engine.start_container("c1");
        CHECK(done1);
        auto done2 = co_await engine.stop_container("c1", 3s);
        CHECK(done2);
        auto done3 = co_await engine.remove_container("c1", true, true);
        CHECK(done3);
        auto done4 = co_await engine.remove_image("repo x:tag");
        CHECK(done4);
        auto done5 = co_await engine.remove_volume("v", true);
        CHECK(done5);
    });
}

TEST_CASE_METHOD(Fixture, "a removal that is under way is waited for") {
    fake.on("DELETE /containers/c1?force=1&v=0", 409,
            R"({"message":"removal of container c1 is already in progress"})");
    int looks = 0;
    fake.on("GET /containers/c1/json", [&](http::Exchange& exchange) -> Awaitable<void> {
        bool gone = ++looks == 3;
        http::Response answer(gone ? 404 : 200, "application/json",
                              gone ? R"({"message":"No such container"})" : R"({"Id":"c1"})");
        co_await exchange.respond(std::move(answer));
    });
    fake.on("DELETE /containers/c2?force=0&v=0", 409,
            R"({"message":"You cannot remove a running container c2"})");
    loop.run([&]() -> Awaitable<void> {
        auto done6 = co_await engine.remove_container("c1", true, false);
        CHECK(done6);
        auto refused = co_await engine.remove_container("c2", false, false);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == ErrorCode::conflict);
    });
    CHECK(looks == 3);
}

TEST_CASE_METHOD(Fixture, "the engine's refusal is told in its words and by its kind") {
    fake.on("GET /containers/none/json", 404, R"({"message":"No such container: none"})");
    loop.run([&]() -> Awaitable<void> {
        auto missing = co_await engine.inspect_container("none");
        REQUIRE_FALSE(missing);
        CHECK(missing.error().code() == ErrorCode::not_found);
        CHECK(missing.error().message() ==
              "the Docker engine at unix://" + fake.path() + ": No such container: none");
    });
}

TEST_CASE_METHOD(Fixture, "a name stays in its place in the path") {
    loop.run([&]() -> Awaitable<void> {
        auto volume = co_await engine.inspect_volume("../containers/x?y");
        CHECK_FALSE(volume);
        CHECK(fake.last().request == "GET /v1.41/volumes/..%2Fcontainers%2Fx%3Fy");
        auto image = co_await engine.inspect_image("r.io:5000/team/app@sha256:12");
        CHECK_FALSE(image);
        CHECK(fake.last().request == "GET /v1.41/images/r.io:5000/team/app@sha256:12/json");
    });
}

TEST_CASE_METHOD(Fixture, "a list is asked for by its filters") {
    std::string target = "GET /containers/json?all=1&filters=" +
                         http::percent_encode(R"({"label":["a","b=c"],"status":["running"]})");
    fake.on(target, 200, R"([{"Id":"c1"},{"Id":"c2"}])");
    loop.run([&]() -> Awaitable<void> {
        ContainerFilter filter;
        filter.labels = {"a", "b=c"};
        filter.states = {"running"};
        auto list = co_await engine.list_containers(filter);
        REQUIRE(list);
        CHECK(list->size() == 2);
    });
}

TEST_CASE_METHOD(Fixture, "a pull sends its credentials and reports its progress") {
    fake.on("POST /images/create?fromImage=r.io%2Fapp&tag=v1&platform=linux%2Famd64", 200,
            "{\"status\":\"Pulling\",\"id\":\"v1\"}\r\n"
            "{\"status\":\"Downloading\",\"id\":\"l1\",\"progressDetail\":{\"current\":5}}\r\n"
            "{\"status\":\"Done\"}");
    loop.run([&]() -> Awaitable<void> {
        PullRequest request("r.io/app:v1");
        request.platform = "linux/amd64";
        request.auth = RegistryAuth("u", "p");
        std::vector<std::string> seen;
        request.on_progress = [&](const PullProgress& progress) {
            seen.push_back(progress.status);
        };
        auto done7 = co_await engine.pull_image(request);
        CHECK(done7);
        CHECK(seen == std::vector<std::string>{"Pulling", "Downloading", "Done"});
    });
    CHECK(fake.last().fields.has("X-Registry-Auth"));
}

TEST_CASE_METHOD(Fixture, "a pull that ends with an error line fails with its words") {
    fake.on("POST /images/create?fromImage=app&tag=latest", 200,
            "{\"status\":\"Pulling\"}\n{\"error\":\"manifest unknown\"}\n{\"status\":\"later\"}\n");
    fake.on("POST /images/create?fromImage=other&tag=latest", 500,
            R"({"message":"Get https://r.io/v2/: unauthorized"})");
    loop.run([&]() -> Awaitable<void> {
        auto unknown = co_await engine.pull_image(PullRequest("app"));
        REQUIRE_FALSE(unknown);
        CHECK(unknown.error().code() == ErrorCode::not_found);
        CHECK(unknown.error().message().ends_with(": manifest unknown"));
        auto refused = co_await engine.pull_image(PullRequest("other"));
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == ErrorCode::unauthenticated);
    });
    CHECK_FALSE(fake.last().fields.has("X-Registry-Auth"));
}

TEST_CASE_METHOD(Fixture, "a commit names repository, tag and changes, and gives the image's id") {
    fake.on("POST /commit?container=c1&repo=snap&tag=t&pause=0&changes=LABEL%20a%3Db", 201,
            R"({"Id":"12ab"})");
    loop.run([&]() -> Awaitable<void> {
        CommitRequest request("c1", "snap", "t");
        request.pause = false;
        request.changes = {"LABEL a=b"};
        auto id = co_await engine.commit(request);
        REQUIRE(id);
        CHECK(*id == "sha256:12ab");
    });
}

TEST_CASE_METHOD(Fixture, "logs are decoded, also of a container with a terminal") {
    fake.on("GET /containers/c1/json", 200, R"({"Id":"c1","Config":{"Tty":false}})");
    fake.on("GET /containers/t1/json", 200, R"({"Id":"t1","Config":{"Tty":true}})");
    fake.on("GET /containers/c1/logs?stdout=1&stderr=1&tail=all", 200,
            frame(1, "out\n") + frame(2, "err\n"), "application/octet-stream");
    fake.on("GET /containers/t1/logs?stdout=1&stderr=1&tail=5&since=12.000034000&timestamps=1", 200,
            "raw text", "application/octet-stream");
    loop.run([&]() -> Awaitable<void> {
        auto plain = co_await engine.container_logs(LogRequest("c1"));
        REQUIRE(plain);
        CHECK(plain->text == "out\nerr\n");
        CHECK_FALSE(plain->truncated);
        LogRequest request("t1");
        request.tail = 5;
        request.since = Timestamp(12s + 34us);
        request.timestamps = true;
        auto terminal = co_await engine.container_logs(request);
        REQUIRE(terminal);
        CHECK(terminal->text == "raw text");
        LogRequest small("c1");
        small.tty = false;
        small.max_bytes = 4;
        auto newest = co_await engine.container_logs(small);
        REQUIRE(newest);
        CHECK(newest->text == "err\n");
        CHECK(newest->truncated);
    });
}

TEST_CASE_METHOD(Fixture, "an archive goes up whole or as it is read, and comes down in pieces") {
    fake.on("PUT /containers/c1/archive?path=%2Fopt", 200);
    std::string archive(700'000, 't');
    fake.on("GET /containers/c1/archive?path=%2Fopt%2Ff", 200, archive, "application/x-tar");
    loop.run([&]() -> Awaitable<void> {
        auto done8 = co_await engine.upload_archive("c1", "/opt", archive);
        CHECK(done8);
        CHECK(fake.last().body == archive);
        test_support::BodyText body(archive, 10'000);
        auto done9 = co_await engine.upload_archive("c1", "/opt", body);
        CHECK(done9);
        CHECK(fake.last().body == archive);
        CHECK(fake.last().fields.get("Content-Type") == "application/x-tar");

        std::string received;
        std::function<Status(std::string_view)> take = [&](std::string_view piece) {
            received += piece;
            return Status();
        };
        auto done10 = co_await engine.download_archive("c1", "/opt/f", 1 << 20, take);
        CHECK(done10);
        CHECK(received == archive);
        auto larger = co_await engine.download_archive("c1", "/opt/f", 1000, take);
        REQUIRE_FALSE(larger);
        CHECK(larger.error().code() == ErrorCode::too_large);
        take = [](std::string_view) { return Error(ErrorCode::io, "disk full"); };
        auto refused = co_await engine.download_archive("c1", "/opt/f", 1 << 20, take);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message() == "disk full");
    });
}

TEST_CASE_METHOD(Fixture, "volumes and networks are made, looked up and listed") {
    fake.on("POST /volumes/create", 201, R"({"Name":"v","Driver":"local","Mountpoint":"/m"})");
    fake.on("GET /volumes?filters=" + http::percent_encode(R"({"label":["a=b"]})"), 200,
            R"({"Volumes":[{"Name":"v","Labels":{"a":"b"}}]})");
    fake.on("GET /networks/team", 200,
            R"({"Id":"n","Driver":"bridge","IPAM":{"Config":[{"Subnet":"172.20.0.0/16"}]}})");
    loop.run([&]() -> Awaitable<void> {
        VolumeRequest request("v");
        request.labels = {{"a", "b"}};
        auto volume = co_await engine.create_volume(request);
        REQUIRE(volume);
        CHECK(volume->mountpoint == "/m");
        CHECK(fake.last().body ==
              R"({"Name":"v","Driver":"local","Labels":{"a":"b"},"DriverOpts":{}})");
        std::vector<std::string> labels{"a=b"};
        auto list = co_await engine.list_volumes(labels);
        REQUIRE(list);
        CHECK(list->size() == 1);
        auto network = co_await engine.inspect_network("team");
        REQUIRE(network);
        CHECK(network->subnets == std::vector<std::string>{"172.20.0.0/16"});
    });
}

TEST_CASE_METHOD(Fixture, "events come as they happen, until the watch is closed") {
    std::string target =
        "GET /events?filters=" + http::percent_encode(R"({"type":["container"]})") +
        "&since=7.000000005";
    net::Event go_on(loop.executor());
    fake.on(target, [&](http::Exchange& exchange) -> Awaitable<void> {
        http::ResponseHead head(200);
        co_await exchange.start(std::move(head));
        co_await exchange.write(R"({"Type":"container","Action":"start","Actor":{"ID":"other"}})"
                                "\n");
        co_await exchange.write(
            R"({"Type":"container","Action":"start","Actor":{"ID":"c1","Attributes":{"our":"1"}}})");
        co_await go_on.wait();
        co_await exchange.write("\n");
        co_await exchange.client_gone();
    });
    loop.run([&]() -> Awaitable<void> {
        EventFilter filter;
        filter.types = {"container"};
        filter.labels = {"our"};
        filter.since_ns = 7'000'000'005;
        auto events = co_await engine.watch_events(filter);
        REQUIRE(events);
        go_on.notify();
        auto event = co_await (*events)->next();
        REQUIRE(event);
        CHECK(event->actor_id == "c1");
        net::Deadline closer(loop.executor(), 20ms, [&] { (*events)->close(); });
        auto end = co_await (*events)->next();
        REQUIRE_FALSE(end);
        CHECK(end.error().code() == ErrorCode::cancelled);
    });
}
