#include "docker_fake_engine.hpp"

using namespace opensandbox;
using namespace opensandbox::runtime::docker;
using namespace std::chrono_literals;
using test::FakeEngine;
using test::RawEngine;
using test_support::Loop;

namespace {

EngineOptions impatient() {
    EngineOptions options;
    options.call_timeout = 300ms;
    return options;
}

RawEngine::Script say(std::string text) {
    return
        [text](net::Stream& stream) -> Awaitable<void> { co_await net::write_all(stream, text); };
}

/// Says something and then holds the connection open until the client leaves.
RawEngine::Script say_and_wait(std::string text) {
    return [text](net::Stream& stream) -> Awaitable<void> {
        co_await net::write_all(stream, text);
        std::string piece(1024, '\0');
        while (true) {
            auto count = co_await stream.read_some(piece);
            if (!count || *count == 0) co_return;
        }
    };
}

const std::string kStreamHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) {
    char size[20];
    std::snprintf(size, sizeof(size), "%zx\r\n", text.size());
    return size + text + "\r\n";
}

struct Outcome {
    std::optional<Error> error;
    [[nodiscard]] ErrorCode code() const { return error ? error->code() : ErrorCode::internal; }
    [[nodiscard]] bool says(std::string_view words) const {
        return error && error->message().find(words) != std::string::npos;
    }
};

/// What info() fails with at an engine that follows a script.
Outcome info_at(RawEngine::Script script, EngineOptions options = EngineOptions()) {
    Loop loop;
    RawEngine raw(loop, std::move(script));
    Engine engine(loop.executor(), raw.address(), options);
    Outcome outcome;
    loop.run([&]() -> Awaitable<void> {
        auto info = co_await engine.info();
        if (!info) outcome.error = info.error();
    });
    REQUIRE(outcome.error);
    CHECK(
        outcome.error->message().starts_with("the Docker engine at " + raw.address().text + ": "));
    return outcome;
}

/// The same for a pull.
Outcome pull_at(RawEngine::Script script, EngineOptions options = EngineOptions()) {
    Loop loop;
    RawEngine raw(loop, std::move(script));
    Engine engine(loop.executor(), raw.address(), options);
    Outcome outcome;
    loop.run([&]() -> Awaitable<void> {
        auto pulled = co_await engine.pull_image(PullRequest("app"));
        if (!pulled) outcome.error = pulled.error();
    });
    REQUIRE(outcome.error);
    CHECK(
        outcome.error->message().starts_with("the Docker engine at " + raw.address().text + ": "));
    return outcome;
}

}  // namespace

TEST_CASE("an engine that is not there is unavailable, by its address") {
    Loop loop;
    EngineAddress address;
    address.socket_path = "/nonexistent/engine.sock";
    address.text = "unix:///nonexistent/engine.sock";
    Engine engine(loop.executor(), address);
    loop.run([&]() -> Awaitable<void> {
        auto answer = co_await engine.ping();
        REQUIRE_FALSE(answer);
        CHECK(answer.error().code() == ErrorCode::unavailable);
        CHECK(answer.error().message() ==
              "the Docker engine at unix:///nonexistent/engine.sock: GET /_ping: connect to "
              "/nonexistent/engine.sock: No such file or directory");
    });
}

TEST_CASE("what is no HTTP is a bad gateway") {
    Outcome outcome = info_at(say("SSH-2.0-OpenSSH_9\r\n\r\n"));
    CHECK(outcome.code() == ErrorCode::bad_gateway);
    CHECK(outcome.says("malformed response"));
}

TEST_CASE("what is no JSON is a bad gateway that names the call") {
    Outcome outcome = info_at(say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"));
    CHECK(outcome.code() == ErrorCode::bad_gateway);
    CHECK(outcome.says("GET /info: answered with no JSON"));
}

TEST_CASE("JSON of another shape is a bad gateway") {
    Outcome outcome = info_at(say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"));
    CHECK(outcome.code() == ErrorCode::bad_gateway);
    CHECK(outcome.says("malformed document"));
}

TEST_CASE("an answer that is too large is not read to its end") {
    EngineOptions options;
    options.max_document = 1000;
    Outcome outcome =
        info_at(say_and_wait("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n" +
                             std::string(100'000, ' ')),
                options);
    CHECK(outcome.code() == ErrorCode::bad_gateway);
    CHECK(outcome.says("1000"));
}

TEST_CASE("an error with an endless body keeps its status") {
    Outcome outcome = info_at(say("HTTP/1.1 503 No\r\n\r\n" + std::string(1'000'000, 'x')));
    CHECK(outcome.code() == ErrorCode::unavailable);
    CHECK(outcome.says("answered with status 503"));
}

TEST_CASE("a redirect is no answer of an engine") {
    Outcome outcome = info_at(say("HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n"));
    CHECK(outcome.code() == ErrorCode::bad_gateway);
    CHECK(outcome.says("answered with status 301"));
}

TEST_CASE("an answer that breaks off is a bad gateway") {
    Outcome outcome = info_at(say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"OSType"));
    CHECK(outcome.code() == ErrorCode::bad_gateway);
    CHECK(info_at(say("")).code() == ErrorCode::bad_gateway);
}

TEST_CASE("an engine that does not answer in time is given up") {
    Outcome silent = info_at(say_and_wait(""), impatient());
    CHECK(silent.code() == ErrorCode::timeout);
    CHECK(silent.says("no answer within 300 ms"));
    Outcome half =
        info_at(say_and_wait("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), impatient());
    CHECK(half.code() == ErrorCode::timeout);
}

TEST_CASE("a version that comes too late is a late call") {
    Loop loop;
    FakeEngine fake(loop);
    net::Event never(loop.executor());
    fake.on("GET /version", [&](http::Exchange&) -> Awaitable<void> { co_await never.wait(); });
    Engine engine(loop.executor(), fake.address(), impatient());
    loop.run([&]() -> Awaitable<void> {
        auto info = co_await engine.info();
        REQUIRE_FALSE(info);
        CHECK(info.error().code() == ErrorCode::timeout);
    });
}

TEST_CASE("a pull that falls silent is given up") {
    Outcome outcome =
        pull_at(say_and_wait(kStreamHead + chunk("{\"status\":\"Pulling\"}\n")), impatient());
    CHECK(outcome.code() == ErrorCode::timeout);
}

TEST_CASE("a pull's stream that is garbage, endless or broken off is a bad gateway") {
    Outcome garbage = pull_at(say(kStreamHead + chunk("not json\n")));
    CHECK(garbage.code() == ErrorCode::bad_gateway);
    CHECK(garbage.says("no JSON"));
    EngineOptions options;
    options.max_line = 100;
    Outcome endless = pull_at(say_and_wait(kStreamHead + chunk(std::string(50'000, '{'))), options);
    CHECK(endless.code() == ErrorCode::bad_gateway);
    CHECK(endless.says("a line of more than 100 bytes"));
    Outcome broken = pull_at(say(kStreamHead + chunk("{\"status\":\"x\"}\n")));
    CHECK(broken.code() == ErrorCode::bad_gateway);
    Outcome framing = pull_at(say(kStreamHead + "zz\r\n"));
    CHECK(framing.code() == ErrorCode::bad_gateway);
}

TEST_CASE("what a stranger does not know is not taken for removed") {
    Loop loop;
    RawEngine raw(loop, say("HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nHello"));
    Engine engine(loop.executor(), raw.address());
    loop.run([&]() -> Awaitable<void> {
        auto removed = co_await engine.remove_container("c", true, true);
        REQUIRE_FALSE(removed);
        CHECK(removed.error().code() == ErrorCode::bad_gateway);
    });
}

TEST_CASE("a log that is no log is a bad gateway") {
    Loop loop;
    FakeEngine fake(loop);
    fake.on("GET /containers/c/logs?stdout=1&stderr=1&tail=all", 200, "no frames at all");
    fake.on("GET /containers/d/logs?stdout=1&stderr=1&tail=all", 200,
            std::string("\x01\0\0\0\0\0\0\x09half", 12));
    Engine engine(loop.executor(), fake.address());
    loop.run([&]() -> Awaitable<void> {
        for (const char* id : {"c", "d"}) {
            LogRequest request(id);
            request.tty = false;
            auto log = co_await engine.container_logs(request);
            REQUIRE_FALSE(log);
            CHECK(log.error().code() == ErrorCode::bad_gateway);
        }
    });
}

TEST_CASE("an engine that was restarted is used again, in its new version") {
    Loop loop;
    FakeEngine fake(loop);
    fake.on("GET /info", 200, "{}");
    Engine engine(loop.executor(), fake.address());
    loop.run([&]() -> Awaitable<void> {
        auto before = co_await engine.info();
        CHECK(before);
        co_await fake.stop();
        auto without = co_await engine.info();
        REQUIRE_FALSE(without);
        CHECK(without.error().code() == ErrorCode::unavailable);
        fake.version = test::version_document("1.40");
        fake.start();
        auto after = co_await engine.info();
        CHECK(after);
    });
    CHECK(fake.last().request == "GET /v1.40/info");
}

TEST_CASE("a watch ends with an error when the engine does") {
    Loop loop;
    FakeEngine fake(loop);
    auto script = [](std::string text) {
        return [text](http::Exchange& exchange) -> Awaitable<void> {
            http::ResponseHead head(200);
            co_await exchange.start(std::move(head));
            if (!text.empty()) co_await exchange.write(text);
            if (text.empty()) co_await exchange.finish();
        };
    };
    Engine engine(loop.executor(), fake.address());
    loop.run([&]() -> Awaitable<void> {
        fake.on("GET /events?filters=%7B%7D", script(""));
        auto ended = co_await engine.watch_events(EventFilter());
        REQUIRE(ended);
        auto end = co_await (*ended)->next();
        REQUIRE_FALSE(end);
        CHECK(end.error().code() == ErrorCode::unavailable);

        fake.on("GET /events?filters=%7B%7D", script("{\"Type\":\"cont"));
        auto broken = co_await engine.watch_events(EventFilter());
        REQUIRE(broken);
        auto cut = co_await (*broken)->next();
        REQUIRE_FALSE(cut);
        CHECK(cut.error().code() == ErrorCode::bad_gateway);

        fake.on("GET /events?filters=%7B%7D", 400, R"({"message":"bad filter"})");
        auto refused = co_await engine.watch_events(EventFilter());
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == ErrorCode::invalid_argument);
    });
}

TEST_CASE("a caller that is cancelled gets an error and no exception") {
    Loop loop;
    FakeEngine fake(loop);
    net::Event asked(loop.executor());
    fake.on("GET /info", [&](http::Exchange& exchange) -> Awaitable<void> {
        asked.notify();
        co_await exchange.client_gone();
    });
    fake.on("POST /images/create?fromImage=app&tag=latest",
            [&](http::Exchange& exchange) -> Awaitable<void> {
                http::ResponseHead head(200);
                co_await exchange.start(std::move(head));
                co_await exchange.write("{\"status\":\"x\"}\n");
                asked.notify();
                co_await exchange.client_gone();
            });
    Engine engine(loop.executor(), fake.address());
    bool pull = GENERATE(false, true);
    Outcome outcome;
    net::Event ended(loop.executor());
    auto caller = [](Engine& at, bool pulls, Outcome& result, net::Event& done) -> Awaitable<void> {
        if (pulls) {
            auto pulled = co_await at.pull_image(PullRequest("app"));
            if (!pulled) result.error = pulled.error();
        } else {
            auto info = co_await at.info();
            if (!info) result.error = info.error();
        }
        done.notify();
    };
    loop.run([&]() -> Awaitable<void> {
        auto cancel =
            net::spawn_cancellable(loop.executor(), caller(engine, pull, outcome, ended), "caller");
        co_await asked.wait();
        co_await net::sleep_for(10ms);
        cancel->emit(asio::cancellation_type::terminal);
        co_await ended.wait();
    });
    CHECK(outcome.code() == ErrorCode::cancelled);
}
