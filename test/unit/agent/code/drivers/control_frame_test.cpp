#include "agent/code/drivers/control_frame.hpp"

#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;

TEST_CASE("Control frames come out whole however their bytes arrive") {
    const std::string bytes = "j2\n{}s0\nj5\n\"\n\n\"";
    for (std::size_t step = 1; step <= bytes.size(); ++step) {
        ControlFrameReader reader;
        std::vector<std::string> payloads;
        std::string kinds;
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            reader.feed(std::string_view(bytes).substr(at, step));
            while (true) {
                auto frame = reader.next();
                REQUIRE(frame);
                if (!*frame) break;
                payloads.push_back((*frame)->payload);
                kinds += static_cast<char>((*frame)->kind);
            }
        }
        CHECK(kinds == "js");
        CHECK(payloads == std::vector<std::string>{"{}", ""});
        auto incomplete = reader.next();
        REQUIRE(incomplete);
        CHECK_FALSE(incomplete->has_value());
        reader.feed("x");
        auto last = reader.next();
        REQUIRE(last);
        REQUIRE(last->has_value());
        CHECK((*last)->payload == "\"\n\n\"x");
    }
}

TEST_CASE("What is no control frame is refused at once") {
    for (const char* bytes : {"x2\n{}", "j\n", "j-1\n", "j2x\n{}", "\n", "j99999999999", "r2\n{}",
                              "j16777217\n", "hello, I am output\n"}) {
        INFO(bytes);
        ControlFrameReader reader;
        reader.feed(bytes);
        auto frame = reader.next();
        REQUIRE_FALSE(frame);
        CHECK(frame.error().code() == ErrorCode::protocol);
        CHECK_FALSE(reader.next());
    }
    ControlFrameReader reader;
    reader.feed("j16777216\n");
    CHECK(reader.next());
}

TEST_CASE("Control messages are checked") {
    auto result = parse_control_message(
        R"({"type":"result","count":3,"data":{"image/png":"x","text/plain":"4"}})");
    REQUIRE(result);
    CHECK(result->mime == R"({"text":"4","image/png":"x"})");
    CHECK(result->count == 3);
    auto error =
        parse_control_message(R"({"type":"error","ename":"E","evalue":"v","traceback":["a","b"]})");
    REQUIRE(error);
    CHECK(error->end.failed);
    CHECK(error->end.traceback == std::vector<std::string>{"a", "b"});
    CHECK(parse_control_message(R"({"type":"done","leaving":true})")->leaving);
    for (const char* text :
         {"", "[]", "{}", R"({"type":"no"})", R"({"type":7})", R"({"type":"result"})",
          R"({"type":"result","data":[]})", R"({"type":"error","traceback":"x"})",
          R"({"type":"done","leaving":1})"}) {
        INFO(text);
        CHECK_FALSE(parse_control_message(text));
    }
}
