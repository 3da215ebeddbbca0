#include "sdk/retry.hpp"

#include "opensandbox/connection.hpp"
#include "opensandbox/sandbox.hpp"
#include "support/http_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using opensandbox::http::test::Loop;
using opensandbox::http::test::ScriptedServer;
using namespace std::chrono_literals;

namespace {

sdk::Error answered(int status) {
    return {sdk::ErrorCode::unavailable, status, "", "no", ""};
}

const sdk::Error kUnreached(sdk::ErrorCode::unavailable, "refused");
const sdk::Error kBroken(sdk::ErrorCode::bad_gateway, "broken");

bool goes_on(sdk::Repeatable repeatable, const sdk::Error& error, sdk::RetryPolicy policy = {}) {
    return sdk::next_attempt(policy, repeatable, 1, error, 0).has_value();
}

/// One request; a body ends with the JSON object that it is.
Awaitable<std::string> receive_request(net::Stream& stream) {
    std::string all;
    std::string piece(65536, '\0');
    while (true) {
        const bool whole = all.starts_with("POST") && all.find("Length: 0\r\n") == std::string::npos
                               ? all.ends_with('}')
                               : all.ends_with("\r\n\r\n");
        if (whole) co_return all;
        auto count = co_await stream.read_some(piece);
        if (!count || *count == 0) co_return std::string();
        all.append(piece, 0, *count);
    }
}

/// What a server answers to one request after the other; empty: it closes the connection.
class Answers {
  public:
    Answers(Loop& loop, std::vector<std::string> texts)
        : texts_(std::move(texts)),
          server_(loop, [this](net::Stream& stream, int) { return serve(stream); }) {}

    sdk::ConnectionConfig config() {
        sdk::ConnectionConfig config;
        config.domain = "127.0.0.1:" + std::to_string(server_.port);
        config.retry.first_delay = 1ms;
        return config;
    }

    std::vector<std::string> requests;

  private:
    Awaitable<void> serve(net::Stream& stream) {
        while (true) {
            auto request = co_await receive_request(stream);
            if (request.empty()) co_return;
            requests.push_back(request);
            const std::string& text = texts_.at(std::min(requests.size(), texts_.size()) - 1);
            if (text.empty()) co_return;
            co_await http::test::send(stream, text);
        }
    }

    std::vector<std::string> texts_;
    ScriptedServer server_;
};

constexpr const char* kBusy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
constexpr const char* kLater = "HTTP/1.1 429 Later\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
constexpr const char* kMuchLater =
    "HTTP/1.1 429 Later\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
constexpr const char* kGone = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
constexpr const char* kDone = "HTTP/1.1 204 Done\r\n\r\n";

}  // namespace

TEST_CASE("what is sent again depends on what was sent and how it failed") {
    using enum sdk::Repeatable;
    CHECK(goes_on(if_unsent, kUnreached));
    CHECK_FALSE(goes_on(if_unsent, kBroken));
    CHECK_FALSE(goes_on(if_unsent, answered(503)));
    CHECK_FALSE(goes_on(if_unsent, answered(429).with_retry_after(0ms)));

    CHECK(goes_on(if_invited, kUnreached));
    CHECK_FALSE(goes_on(if_invited, answered(503)));
    CHECK(goes_on(if_invited, answered(503).with_retry_after(1s)));
    CHECK(goes_on(if_invited, answered(429).with_retry_after(1s)));
    CHECK_FALSE(goes_on(if_invited, answered(500).with_retry_after(1s)));

    for (int status : {429, 502, 503})
        CHECK(goes_on(always, answered(status)));
    for (int status : {400, 401, 404, 409, 500, 501, 504})
        CHECK_FALSE(goes_on(always, answered(status)));
    CHECK(goes_on(always, kBroken));
    CHECK_FALSE(goes_on(always, sdk::Error(sdk::ErrorCode::timeout, "late")));

    sdk::RetryPolicy policy;
    policy.unreachable = false;
    CHECK_FALSE(goes_on(always, kUnreached, policy));
    CHECK_FALSE(goes_on(always, answered(503), sdk::RetryPolicy::none()));
    CHECK_FALSE(goes_on(always, answered(503).with_retry_after(61s)));
}

TEST_CASE("pauses double up to a limit and are shortened by chance") {
    sdk::RetryPolicy policy;
    policy.first_delay = 100ms;
    policy.longest_delay = 350ms;
    policy.jitter = 0.5;
    CHECK(sdk::retry_delay(policy, 1, 0) == 100ms);
    CHECK(sdk::retry_delay(policy, 2, 0) == 200ms);
    CHECK(sdk::retry_delay(policy, 3, 0) == 350ms);
    CHECK(sdk::retry_delay(policy, 90, 0) == 350ms);
    CHECK(sdk::retry_delay(policy, 2, 1) == 100ms);
    CHECK(sdk::retry_delay(policy, 2, 0.5) == 150ms);
    CHECK(sdk::next_attempt(policy, sdk::Repeatable::always, 1, answered(503).with_retry_after(7s),
                            0) == 7000ms);
}

TEST_CASE("Retry-After is seconds or a date") {
    const std::chrono::sys_seconds now(std::chrono::seconds(784111777));  // 1994-11-06 08:49:37
    CHECK(sdk::parse_retry_after("0", now) == 0ms);
    CHECK(sdk::parse_retry_after("120", now) == 120s);
    CHECK(sdk::parse_retry_after("Sun, 06 Nov 1994 08:49:47 GMT", now) == 10s);
    CHECK(sdk::parse_retry_after("Sun, 06 Nov 1994 08:00:00 GMT", now) == 0ms);
    for (const char* bad : {"", "-1", "soon", "1.5", "Sun, 06 Nov 1994", "12 "}) {
        INFO(bad);
        CHECK_FALSE(sdk::parse_retry_after(bad, now));
    }
}

TEST_CASE("a policy out of range is refused with the name of its member") {
    auto names = [](sdk::RetryPolicy policy, const char* member) {
        auto refused = sdk::refuse_policy(policy);
        return refused && refused->message().find(member) != std::string::npos;
    };
    CHECK_FALSE(sdk::refuse_policy(sdk::RetryPolicy()));
    CHECK(names(sdk::RetryPolicy(0), "attempts"));
    CHECK(names(sdk::RetryPolicy(101), "attempts"));
    sdk::RetryPolicy policy;
    policy.jitter = 1.5;
    CHECK(names(policy, "jitter"));
    policy = {};
    policy.longest_delay = 1ms;
    CHECK(names(policy, "longest_delay"));
    policy = {};
    policy.first_delay = 0ms;
    CHECK(names(policy, "first_delay"));
    Loop loop;
    sdk::ConnectionConfig config;
    config.retry.attempts = 0;
    CHECK(sdk::Connection::open(loop.executor(), config).has_error());
}

TEST_CASE("a request is repeated as often as the policy of its connection says") {
    Loop loop;
    Answers answers(loop, {kBusy});
    loop.run([&]() -> Awaitable<void> {
        auto connection = sdk::Connection::open(loop.executor(), answers.config());
        REQUIRE(connection.has_value());
        sdk::Sandboxes three(*connection);
        auto listed = co_await three.list();
        REQUIRE(listed.has_error());
        CHECK(listed.error().status() == 503);
        CHECK(answers.requests.size() == 3);
        auto once = connection->with_retry(sdk::RetryPolicy::none());
        REQUIRE(once.has_value());
        sdk::Sandboxes one(*once);
        listed = co_await one.list();
        CHECK(listed.has_error());
        CHECK(answers.requests.size() == 4);
        CHECK(connection->with_retry(sdk::RetryPolicy(0)).has_error());
    });
}

TEST_CASE("a create is sent again with the same key when the server invites to that") {
    Loop loop;
    Answers answers(loop, {kLater, kLater, kMuchLater});
    loop.run([&]() -> Awaitable<void> {
        auto connection = sdk::Connection::open(loop.executor(), answers.config());
        REQUIRE(connection.has_value());
        sdk::CreateOptions options("host");
        auto sandbox = co_await sdk::Sandbox::create(*connection, std::move(options));
        REQUIRE(sandbox.has_error());
        CHECK(sandbox.error().retry_after() == 3600s);
        CHECK(sandbox.error().code() == sdk::ErrorCode::resource_exhausted);
    });
    REQUIRE(answers.requests.size() == 3);
    auto key = [&](std::size_t at) {
        const std::string& text = answers.requests[at];
        auto begin = text.find("Idempotency-Key: ");
        return text.substr(begin, text.find('\r', begin) - begin);
    };
    CHECK(key(0).size() > 40);
    CHECK(key(0) == key(1));
    CHECK(key(1) == key(2));
}

TEST_CASE("a deletion whose answer was lost is done when nothing is left to delete") {
    Loop loop;
    Answers answers(loop, {"", kGone});
    loop.run([&]() -> Awaitable<void> {
        auto connection = sdk::Connection::open(loop.executor(), answers.config());
        REQUIRE(connection.has_value());
        sdk::Sandboxes sandboxes(*connection);
        auto killed = co_await sandboxes.kill("s");
        CHECK(killed.has_value());
        killed = co_await sandboxes.kill("s");
        REQUIRE(killed.has_error());
        CHECK(killed.error().code() == sdk::ErrorCode::not_found);
    });
}

TEST_CASE("a server that comes up in between gets the request that found it down") {
    Loop loop;
    std::uint16_t port = 0;
    {
        auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
        REQUIRE(listener.has_value());
        port = (*listener)->port();
    }
    std::unique_ptr<net::Listener> late;
    loop.run([&]() -> Awaitable<void> {
        sdk::ConnectionConfig config;
        config.domain = "127.0.0.1:" + std::to_string(port);
        config.retry.attempts = 100;
        config.retry.first_delay = 20ms;
        config.retry.longest_delay = 20ms;
        auto connection = sdk::Connection::open(loop.executor(), config);
        REQUIRE(connection.has_value());
        auto rise = [](Loop& on, std::uint16_t at,
                       std::unique_ptr<net::Listener>& into) -> Awaitable<void> {
            co_await net::sleep_for(60ms);
            auto listener = net::listen_tcp(on.executor(), "127.0.0.1", at);
            REQUIRE(listener.has_value());
            into = std::move(*listener);
            auto stream = co_await into->accept();
            REQUIRE(stream.has_value());
            auto request = co_await http::test::receive_until(**stream, "\r\n\r\n");
            co_await http::test::send(**stream, kDone);
        };
        net::spawn(loop.executor(), rise(loop, port, late), "late server");
        sdk::Sandboxes sandboxes(*connection);
        // A request that is not idempotent: nothing of it was sent before.
        auto paused = co_await sandboxes.pause("s");
        CHECK(paused.has_value());
    });
}

TEST_CASE("a request has its own limit of time, up to the end of the answer") {
    Loop loop;
    for (std::string half : {"", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"}) {
        ScriptedServer slow(loop, [half](net::Stream& stream, int) -> Awaitable<void> {
            auto request = co_await http::test::receive_until(stream, "\r\n\r\n");
            if (!half.empty()) co_await http::test::send(stream, half);
            co_await net::sleep_for(30s);
        });
        loop.run([&]() -> Awaitable<void> {
            sdk::ConnectionConfig config;
            config.domain = "127.0.0.1:" + std::to_string(slow.port);
            auto connection = sdk::Connection::open(loop.executor(), config);
            REQUIRE(connection.has_value());
            sdk::Sandboxes hurried(connection->with_request_timeout(50ms));
            auto info = co_await hurried.get("s");
            REQUIRE(info.has_error());
            CHECK(info.error().code() == sdk::ErrorCode::timeout);
            CHECK(info.error().message().find("50 ms") != std::string::npos);
        });
        CHECK(slow.connections == 1);
    }
}
