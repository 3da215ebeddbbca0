#include "http/message.hpp"

#include "http/serialize.hpp"
#include "http/status.hpp"
#include "support/body_text.hpp"
#include "support/event_loop.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::http;
using test_support::BodyText;
using test_support::Loop;

TEST_CASE("a target splits into raw path and query", "[http][message]") {
    RequestHead head("GET", "/a%2Fb?x=1?y");
    CHECK(head.path() == "/a%2Fb");
    CHECK(head.query() == "x=1?y");
    head.target = "/plain";
    CHECK(head.path() == "/plain");
    CHECK(head.query().empty());
}

TEST_CASE("percent decoding takes whole escapes only", "[http][message]") {
    CHECK(percent_decode("a%20b%C3%A4+") == std::string("a b\xC3\xA4+"));
    CHECK(percent_decode("a+b", true) == std::string("a b"));
    CHECK(percent_decode("%41") == std::string("A"));
    CHECK(percent_decode("%00") == std::string(1, '\0'));
    CHECK_FALSE(percent_decode("%"));
    CHECK_FALSE(percent_decode("%4"));
    CHECK_FALSE(percent_decode("x%zz"));
}

TEST_CASE("percent encoding round-trips every byte", "[http][message]") {
    std::string all;
    for (int i = 0; i < 256; ++i)
        all += static_cast<char>(i);
    CHECK(percent_decode(percent_encode(all)) == all);
    CHECK(percent_encode("a/b c~", "/") == "a/b%20c~");
    CHECK(percent_encode("a/b") == "a%2Fb");
}

TEST_CASE("queries keep order, repeats and malformed escapes", "[http][query]") {
    Query query("path=a%20b&path=c+d&flag&&x=1=2&bad=%zz%");
    CHECK(query.get("path") == std::string_view("a b"));
    CHECK(query.all("path") == std::vector<std::string_view>{"a b", "c d"});
    CHECK(query.get("flag") == std::string_view(""));
    CHECK(query.get("x") == std::string_view("1=2"));
    CHECK(query.get("bad") == std::string_view("%zz%"));
    CHECK_FALSE(query.get("none"));
    CHECK(std::distance(query.begin(), query.end()) == 5);
    Query empty("");
    CHECK(empty.begin() == empty.end());
}

TEST_CASE("a body is read whole up to the limit", "[http][message]") {
    Loop loop;
    auto known = GENERATE(true, false);
    loop.run([&]() -> Awaitable<void> {
        BodyText exact(std::string(50'000, 'x'), 777, known);
        auto all = co_await read_all(exact, 50'000);
        REQUIRE(all.has_value());
        CHECK(*all == std::string(50'000, 'x'));
        BodyText over(std::string(50'001, 'x'), 777, known);
        auto refused = co_await read_all(over, 50'000);
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code() == ErrorCode::too_large);
        CHECK_THAT(refused.error().message(), Catch::Matchers::Contains("50000"));
        BodyText empty("", 1, known);
        auto nothing = co_await read_all(empty, 0);
        REQUIRE(nothing.has_value());
        CHECK(nothing->empty());
    });
}

TEST_CASE("a declared length that is a lie costs no memory", "[http][message]") {
    struct Liar final : BodyReader {
        Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
            largest = std::max(largest, into.size());
            co_return 0;
        }
        std::optional<std::uint64_t> content_length() const override {
            return std::uint64_t(1) << 40;
        }
        std::size_t largest = 0;
    };
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        Liar liar;
        auto all = co_await read_all(liar, SIZE_MAX);
        REQUIRE(all.has_value());
        CHECK(liar.largest <= 2 * 1024 * 1024);
    });
}

TEST_CASE("no field value can forge a line", "[http][serialize]") {
    std::string out;
    append_field(out, "X", std::string("a\r\nSet-Cookie: b\0c", 18));
    CHECK(out == "X: a  Set-Cookie: b c\r\n");
    std::string dropped;
    append_field(dropped, "Bad Name", "x");
    append_field(dropped, "", "x");
    append_field(dropped, "A:\r\nB", "x");
    CHECK(dropped.empty());
}

TEST_CASE("error bodies are JSON whatever the message holds", "[http][serialize]") {
    CHECK(error_body("A::B", "say \"hi\"\n\\") ==
          "{\"code\":\"A::B\",\"message\":\"say \\\"hi\\\"\\n\\\\\"}");
}

TEST_CASE("every error code has its status", "[http][status]") {
    CHECK(status_of(ErrorCode::invalid_argument) == 400);
    CHECK(status_of(ErrorCode::unauthenticated) == 401);
    CHECK(status_of(ErrorCode::permission_denied) == 403);
    CHECK(status_of(ErrorCode::not_found) == 404);
    CHECK(status_of(ErrorCode::conflict) == 409);
    CHECK(status_of(ErrorCode::too_large) == 413);
    CHECK(status_of(ErrorCode::resource_exhausted) == 429);
    CHECK(status_of(ErrorCode::unsupported) == 501);
    CHECK(status_of(ErrorCode::unavailable) == 503);
    CHECK(status_of(ErrorCode::bad_gateway) == 502);
    CHECK(status_of(ErrorCode::timeout) == 504);
    CHECK(status_of(ErrorCode::protocol) == 400);
    CHECK(status_of(ErrorCode::io) == 500);
    CHECK(reason_phrase(404) == "Not Found");
    CHECK(reason_phrase(799) == "Unknown");
}
