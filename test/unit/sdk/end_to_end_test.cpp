#include "http/router.hpp"
#include "json/document.hpp"
#include "opensandbox/images.hpp"
#include "opensandbox/sandbox.hpp"
#include "sdk/transport.hpp"
#include "support/http_fixture.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace opensandbox;
using opensandbox::http::test::Loop;
using opensandbox::http::test::TestServer;

namespace {

constexpr std::string_view kCreated =
    R"({"id":"sb-1","status":{"state":"Running"},"createdAt":"2026-01-01T00:00:00Z","entrypoint":[]})";

/// A lifecycle server and an agent in one, which answer from a table and remember what was asked.
class Fake {
  public:
    explicit Fake(Loop& loop)
        : server_(loop, [this](http::Exchange& exchange) { return serve(exchange); }),
          executor_(loop.executor()) {
        answers["GET /v1/sandboxes/sb-1/endpoints/44772"] = [this] {
            return http::json_response(200,
                                       R"({"endpoint":"127.0.0.1:)" + std::to_string(server_.port) +
                                           R"(/agent","headers":{"X-EXECD-ACCESS-TOKEN":"t"}})");
        };
        answer("GET /agent/ping", http::Response(200));
        answer("POST /v1/sandboxes", http::json_response(202, std::string(kCreated)));
        answer("DELETE /v1/sandboxes/sb-1", http::Response(204));
    }

    void answer(const std::string& request, http::Response response) {
        answers[request] = [response] { return response; };
    }

    sdk::Connection connect(std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
        sdk::ConnectionConfig config;
        config.domain = "127.0.0.1:" + std::to_string(server_.port);
        config.api_key = "key";
        config.request_timeout = timeout;
        auto connection = sdk::Connection::open(executor_, config);
        REQUIRE(connection.has_value());
        return *connection;
    }

    [[nodiscard]] std::size_t count(const std::string& request) const {
        auto found = seen.find(request);
        return found == seen.end() ? 0 : found->second;
    }

    std::map<std::string, std::function<http::Response()>> answers;
    std::map<std::string, std::size_t> seen;
    std::map<std::string, std::string> bodies;
    std::map<std::string, http::RequestHead> heads;
    /// For streams: written piece by piece, the connection cut afterwards when `cut` is set.
    std::map<std::string, std::vector<std::string>> streams;
    bool cut = false;

  private:
    Awaitable<void> serve(http::Exchange& exchange) {
        const std::string request =
            exchange.request().method + " " + std::string(exchange.request().path());
        ++seen[request];
        heads[request] = exchange.request();
        auto body = co_await http::read_all(exchange.body(), 1 << 20);
        bodies[request] = body ? *body : "";
        if (auto stream = streams.find(request); stream != streams.end()) {
            http::ResponseHead head(200, {{"Content-Type", "text/event-stream"}});
            auto started = co_await exchange.start(std::move(head));
            REQUIRE(started.has_value());
            for (const auto& piece : stream->second) {
                auto written = co_await exchange.write(piece);
                if (!written) co_return;
            }
            if (cut) co_return;
            auto finished = co_await exchange.finish();
            static_cast<void>(finished);
            co_return;
        }
        auto known = answers.find(request);
        auto response =
            known == answers.end()
                ? http::json_response(404, R"({"code":"TEST::UNKNOWN","message":"no such"})")
                : known->second();
        co_await exchange.respond(std::move(response));
    }

    TestServer server_;
    asio::any_io_executor executor_;
};

Awaitable<sdk::Sandbox> make_sandbox(Fake& fake) {
    sdk::CreateOptions options("host");
    auto sandbox = co_await sdk::Sandbox::create(fake.connect(), std::move(options));
    REQUIRE(sandbox.has_value());
    co_return *sandbox;
}

}  // namespace

TEST_CASE("create waits for the agent and sends the key, the token and an idempotency key") {
    Loop loop;
    Fake fake(loop);
    int pings = 0;
    fake.answers["GET /agent/ping"] = [&] { return http::Response(++pings < 3 ? 502 : 200); };
    loop.run([&]() -> Awaitable<void> {
        auto sandbox = co_await make_sandbox(fake);
        CHECK(sandbox.id() == "sb-1");
    });
    CHECK(pings == 3);
    auto& create = fake.heads["POST /v1/sandboxes"];
    CHECK(create.fields.get("OPEN-SANDBOX-API-KEY") == "key");
    CHECK(create.fields.has("Idempotency-Key"));
    auto& ping = fake.heads["GET /agent/ping"];
    CHECK(ping.fields.get("X-EXECD-ACCESS-TOKEN") == "t");
    CHECK_FALSE(ping.fields.has("OPEN-SANDBOX-API-KEY"));  // direct: the agent never sees it
    CHECK(fake.count("DELETE /v1/sandboxes/sb-1") == 0);
}

TEST_CASE("a sandbox whose agent never answers is deleted again") {
    Loop loop;
    Fake fake(loop);
    fake.answer("GET /agent/ping", http::Response(502));
    loop.run([&]() -> Awaitable<void> {
        sdk::CreateOptions options("host");
        options.ready_timeout = std::chrono::milliseconds(50);
        auto sandbox = co_await sdk::Sandbox::create(fake.connect(), std::move(options));
        REQUIRE(sandbox.has_error());
        CHECK(sandbox.error().code() == sdk::ErrorCode::timeout);
        CHECK(sandbox.error().message().find("sb-1") != std::string::npos);
    });
    CHECK(fake.count("DELETE /v1/sandboxes/sb-1") == 1);
}

TEST_CASE("an agent that refuses the token ends the wait at once") {
    Loop loop;
    Fake fake(loop);
    fake.answer("GET /agent/ping", http::json_response(401, R"({"error":"Unauthorized"})"));
    loop.run([&]() -> Awaitable<void> {
        sdk::CreateOptions options("host");
        auto sandbox = co_await sdk::Sandbox::create(fake.connect(), std::move(options));
        REQUIRE(sandbox.has_error());
        CHECK(sandbox.error().code() == sdk::ErrorCode::unauthenticated);
    });
    CHECK(fake.count("GET /agent/ping") == 1);
    CHECK(fake.count("DELETE /v1/sandboxes/sb-1") == 1);
}

TEST_CASE("an endpoint that is not there yet is asked for again") {
    Loop loop;
    Fake fake(loop);
    auto found = fake.answers["GET /v1/sandboxes/sb-1/endpoints/44772"];
    int asked = 0;
    fake.answers["GET /v1/sandboxes/sb-1/endpoints/44772"] = [&, found] {
        if (++asked < 3) {
            return http::json_response(
                404, R"({"code":"KUBERNETES::POD_IP_NOT_AVAILABLE","message":"wait"})");
        }
        return found();
    };
    loop.run([&]() -> Awaitable<void> { co_await make_sandbox(fake); });
    CHECK(asked == 3);
}

TEST_CASE("through the server's proxy the agent's requests carry the key") {
    Loop loop;
    Fake fake(loop);
    loop.run([&]() -> Awaitable<void> {
        auto config = fake.connect().config();
        config.use_server_proxy = true;
        auto connection = sdk::Connection::open(loop.executor(), config);
        auto sandbox = co_await sdk::Sandbox::connect(*connection, "sb-1");
        REQUIRE(sandbox.has_value());
    });
    CHECK(fake.heads["GET /v1/sandboxes/sb-1/endpoints/44772"].query() == "use_server_proxy=true");
    CHECK(fake.heads["GET /agent/ping"].fields.get("OPEN-SANDBOX-API-KEY") == "key");
}

TEST_CASE("a command's output is passed on, both streams apart, and its end understood") {
    Loop loop;
    Fake fake(loop);
    fake.streams["POST /agent/command"] = {
        R"({"type":"init","text":"id1","timestamp":1})"
        "\n\n"
        R"({"type":"stdout","te)",
        R"(xt":"a\n","timestamp":1})"
        "\n",
        "\n"
        R"({"type":"stderr","text":"e","timestamp":1})"
        "\n\n",
        R"({"type":"stdout","text":"b","timestamp":1})"
        "\n\n",
        R"({"type":"error","error":{"ename":"CommandExecError","evalue":"3","traceback":["exit status 3"]},"timestamp":1})"
        "\n\n"};
    loop.run([&]() -> Awaitable<void> {
        auto sandbox = co_await make_sandbox(fake);
        sdk::CommandRequest request(std::vector<std::string>{"x"});
        auto done = co_await sandbox.commands().run(std::move(request));
        REQUIRE(done.has_value());
        CHECK(done->id == "id1");
        CHECK(done->output == "a\nb");
        CHECK(done->error_output == "e");
        CHECK(done->exit_code == 3);
        CHECK_FALSE(done->truncated);
    });
    CHECK(fake.bodies["POST /agent/command"] == R"({"argv":["x"]})");
}

TEST_CASE("collected output has a limit; a handler takes all of it") {
    Loop loop;
    Fake fake(loop);
    fake.streams["POST /agent/command"] = {R"({"type":"init","text":"i","timestamp":1})"
                                           "\n\n",
                                           R"({"type":"stdout","text":"12345","timestamp":1})"
                                           "\n\n",
                                           R"({"type":"stderr","text":"67890","timestamp":1})"
                                           "\n\n",
                                           R"({"type":"execution_complete","timestamp":1})"
                                           "\n\n"};
    loop.run([&]() -> Awaitable<void> {
        auto sandbox = co_await make_sandbox(fake);
        sdk::OutputHandlers handlers;
        handlers.max_output = 3;
        std::string taken;
        handlers.on_error_output = [&](std::string_view text) { taken += text; };
        sdk::CommandRequest request("x");
        auto done = co_await sandbox.commands().run(std::move(request), std::move(handlers));
        REQUIRE(done.has_value());
        CHECK(done->output == "123");
        CHECK(done->truncated);
        CHECK(taken == "67890");
        CHECK(done->error_output.empty());
        CHECK(done->exit_code == 0);
    });
}

TEST_CASE("a stream that breaks off, or ends without a verdict, is an error and no success") {
    for (bool cut : {true, false}) {
        Loop loop;
        Fake fake(loop);
        fake.cut = cut;
        fake.streams["POST /agent/command"] = {R"({"type":"init","text":"i","timestamp":1})"
                                               "\n\n"};
        loop.run([&]() -> Awaitable<void> {
            auto sandbox = co_await make_sandbox(fake);
            sdk::CommandRequest request("x");
            auto done = co_await sandbox.commands().run(std::move(request));
            REQUIRE(done.has_error());
        });
    }
}

TEST_CASE("a background command gives its id") {
    Loop loop;
    Fake fake(loop);
    fake.streams["POST /agent/command"] = {R"({"type":"init","text":"bg","timestamp":1})"
                                           "\n\n"
                                           R"({"type":"execution_complete","timestamp":1})"
                                           "\n\n"};
    loop.run([&]() -> Awaitable<void> {
        auto sandbox = co_await make_sandbox(fake);
        sdk::CommandRequest request("sleep 1");
        auto id = co_await sandbox.commands().start(std::move(request));
        REQUIRE(id.has_value());
        CHECK(*id == "bg");
    });
    CHECK(fake.bodies["POST /agent/command"] == R"({"command":"sleep 1","background":true})");
}

TEST_CASE("requests that break a rule are refused before they are sent") {
    Loop loop;
    Fake fake(loop);
    loop.run([&]() -> Awaitable<void> {
        auto sandbox = co_await make_sandbox(fake);
        sdk::CommandRequest both("x");
        both.argv = {"x"};
        auto refused = co_await sandbox.commands().run(std::move(both));
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == sdk::ErrorCode::invalid_argument);
        std::vector<std::string> none;
        auto removed = co_await sandbox.files().remove(none);
        CHECK(removed.has_error());
        sdk::Sandboxes sandboxes(fake.connect());
        auto killed = co_await sandboxes.kill("");
        CHECK(killed.has_error());
    });
    CHECK(fake.count("POST /agent/command") == 0);
    CHECK(fake.count("DELETE /agent/files") == 0);
    CHECK(fake.count("DELETE /v1/sandboxes/") == 0);
}

TEST_CASE("ids and paths are encoded where they become part of a target") {
    Loop loop;
    Fake fake(loop);
    loop.run([&]() -> Awaitable<void> {
        sdk::Sandboxes sandboxes(fake.connect());
        auto info = co_await sandboxes.get("a/../b?c");
        CHECK(info.has_error());
        sdk::Images images(fake.connect());
        fake.answer("DELETE /v1/images/my%2Fimage%3A1", http::Response(204));
        auto removed = co_await images.remove("my/image:1");
        CHECK(removed.has_value());
    });
    CHECK(fake.count("GET /v1/sandboxes/a%2F..%2Fb%3Fc") == 1);
}

TEST_CASE("an upload is one metadata part and one file part") {
    Loop loop;
    Fake fake(loop);
    fake.answer("POST /agent/files/upload", http::Response(200));
    loop.run([&]() -> Awaitable<void> {
        auto sandbox = co_await make_sandbox(fake);
        sdk::Permissions permissions(0640);
        permissions.owner = "me";
        auto written = co_await sandbox.files().write("/tmp/ü", "content", std::move(permissions));
        CHECK(written.has_value());
    });
    const std::string& body = fake.bodies["POST /agent/files/upload"];
    CHECK(body.find(R"({"mode":640,"owner":"me","path":"/tmp/ü"})") != std::string::npos);
    CHECK(body.find("name=\"metadata\"; filename=\"metadata\"") != std::string::npos);
    CHECK(body.find("\r\n\r\ncontent\r\n--") != std::string::npos);
    CHECK(fake.heads["POST /agent/files/upload"].fields.get("Content-Length") ==
          std::to_string(body.size()));
}

TEST_CASE("a file is read within a limit") {
    Loop loop;
    Fake fake(loop);
    fake.answer("GET /agent/files/download",
                http::Response(200, "application/octet-stream", "12345"));
    loop.run([&]() -> Awaitable<void> {
        auto sandbox = co_await make_sandbox(fake);
        auto content = co_await sandbox.files().read("/x y");
        REQUIRE(content.has_value());
        CHECK(*content == "12345");
        auto limited = co_await sandbox.files().read("/x y", 4);
        REQUIRE(limited.has_error());
        CHECK(limited.error().code() == sdk::ErrorCode::too_large);
    });
    CHECK(fake.heads["GET /agent/files/download"].query() == "path=%2Fx%20y");
}

TEST_CASE("images are listed and imported") {
    Loop loop;
    Fake fake(loop);
    const std::string item =
        R"({"reference":"a:1","digest":"sha256:x","size":5,"createdAt":"2026-01-01T00:00:00Z","builtIn":false})";
    fake.answer("GET /v1/images", http::json_response(200, R"({"items":[)" + item + "]}"));
    fake.answer("POST /v1/images", http::json_response(201, item));
    loop.run([&]() -> Awaitable<void> {
        sdk::Images images(fake.connect());
        auto list = co_await images.list();
        REQUIRE(list.has_value());
        CHECK(list->at(0).reference == "a:1");
        auto archive = sdk::read_bytes("archive");
        auto image = co_await images.import_archive("a:1", *archive);
        REQUIRE(image.has_value());
        CHECK(image->size == 5);
    });
    CHECK(fake.bodies["POST /v1/images"] == "archive");
    CHECK(fake.heads["POST /v1/images"].query() == "reference=a%3A1");
}

TEST_CASE("what the server says of a failure reaches the caller") {
    Loop loop;
    Fake fake(loop);
    fake.answer(
        "GET /v1/sandboxes/none",
        http::json_response(404, R"({"code":"NATIVE::SANDBOX_NOT_FOUND","message":"gone"})"));
    loop.run([&]() -> Awaitable<void> {
        sdk::Sandboxes sandboxes(fake.connect());
        auto info = co_await sandboxes.get("none");
        REQUIRE(info.has_error());
        CHECK(info.error().code() == sdk::ErrorCode::not_found);
        CHECK(info.error().wire_code() == "NATIVE::SANDBOX_NOT_FOUND");
        CHECK(info.error().status() == 404);
    });
}

TEST_CASE("a busy server is asked again for what may be repeated, and only that") {
    Loop loop;
    Fake fake(loop);
    int asked = 0;
    fake.answers["GET /v1/sandboxes/sb-1"] = [&] {
        return ++asked < 2 ? http::Response(503) : http::json_response(200, std::string(kCreated));
    };
    fake.answer("POST /v1/sandboxes", http::Response(503));
    loop.run([&]() -> Awaitable<void> {
        sdk::Sandboxes sandboxes(fake.connect());
        auto info = co_await sandboxes.get("sb-1");
        CHECK(info.has_value());
        sdk::CreateOptions options("host");
        auto sandbox = co_await sdk::Sandbox::create(fake.connect(), std::move(options));
        CHECK(sandbox.has_error());
    });
    CHECK(asked == 2);
    CHECK(fake.count("POST /v1/sandboxes") == 1);
}

TEST_CASE("a server that is not there is unavailable, and the error names it") {
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        std::uint16_t port = 0;
        {
            auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
            REQUIRE(listener.has_value());
            port = (*listener)->port();
        }
        sdk::ConnectionConfig config;
        config.domain = "127.0.0.1:" + std::to_string(port);
        auto connection = sdk::Connection::open(loop.executor(), config);
        REQUIRE(connection.has_value());
        sdk::Sandboxes sandboxes(*connection);
        auto page = co_await sandboxes.list();
        REQUIRE(page.has_error());
        CHECK(page.error().code() == sdk::ErrorCode::unavailable);
        CHECK(page.error().message().find(config.domain) != std::string::npos);
    });
}

TEST_CASE("a connection is refused for a configuration that cannot work") {
    Loop loop;
    sdk::ConnectionConfig config;
    config.domain = "a b";
    CHECK(sdk::Connection::open(loop.executor(), config).has_error());
    config.domain = "h";
    config.protocol = "ftp";
    CHECK(sdk::Connection::open(loop.executor(), config).error().code() ==
          sdk::ErrorCode::invalid_argument);
    config.protocol = "http";
    config.api_key = "k\r\nX: y";
    CHECK(sdk::Connection::open(loop.executor(), config).has_error());
}
