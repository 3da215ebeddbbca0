#include "redis/resp.hpp"

#include "redis/client.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::redis;

TEST_CASE("Redis replies are parsed whole, in pieces, and within limits") {
    using resp::Kind;
    auto parse = [](std::string_view text) { return resp::parse(text); };
    CHECK((*parse("+OK\r\nrest"))->value.text == "OK");
    CHECK((*parse("+OK\r\nrest"))->used == 5);
    CHECK((*parse("-ERR no\r\n"))->value.kind == Kind::error);
    CHECK((*parse(":-7\r\n"))->value.number == -7);
    CHECK((*parse("$-1\r\n"))->value.kind == Kind::null);
    CHECK((*parse("*-1\r\n"))->value.kind == Kind::null);
    std::string pair = "*2\r\n$1\r\nk\r\n$3\r\na\r\n\r\n";
    auto value = (*parse(pair))->value;
    REQUIRE(value.items.size() == 2);
    CHECK(value.items[1].text == "a\r\n");
    for (std::size_t i = 0; i < pair.size(); ++i) {
        auto part = parse(std::string_view(pair).substr(0, i));
        REQUIRE(part.has_value());
        CHECK_FALSE(part->has_value());
    }
    for (std::string bad :
         {"\r\n", "?\r\n", ":x\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "$1\r\nabc\r\n",
          "$9999999999\r\n", "*9999999\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"}) {
        INFO(bad);
        auto refused = parse(bad);
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().code() == ErrorCode::protocol);
    }
    CHECK_FALSE(parse("+" + std::string(resp::kMaxLine + 1, 'x')).has_value());
    CHECK(resp::command({"BRPOP", "k", "5"}) == "*3\r\n$5\r\nBRPOP\r\n$1\r\nk\r\n$1\r\n5\r\n");
}

TEST_CASE("Redis addresses") {
    auto full = parse_url("redis://us%40er:p%3Aw@[::1]:7000/3");
    REQUIRE(full.has_value());
    CHECK(full->host == "::1");
    CHECK(full->port == 7000);
    CHECK(full->user == "us@er");
    CHECK(full->password == "p:w");
    CHECK(full->database == 3);
    auto plain = parse_url("redis://cache");
    REQUIRE(plain.has_value());
    CHECK(plain->port == 6379);
    CHECK(parse_url("redis://:secret@cache/")->password == "secret");
    for (const char* bad : {"", "cache:6379", "http://x", "redis://", "redis://:80", "redis://h:0",
                            "redis://h:x", "redis://h:65536", "redis://h/x", "redis://h/-1",
                            "redis://nocolon@h", "redis://a:%zz@h"}) {
        INFO(bad);
        CHECK_FALSE(parse_url(bad).has_value());
    }
    CHECK(parse_url("rediss://h").error().code() == ErrorCode::unsupported);
}
