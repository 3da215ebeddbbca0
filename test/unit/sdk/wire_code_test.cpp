#include "sdk/wire_code.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::sdk;

TEST_CASE("Frames of a terminal") {
    std::uint64_t offset = 10;
    SECTION("output moves the offset on") {
        auto event = wire::decode_terminal_output("\x01hello", offset);
        REQUIRE(event);
        CHECK(event->kind == TerminalEvent::Kind::output);
        CHECK(event->data == "hello");
        CHECK(offset == 15);
    }
    SECTION("a replay says where it begins") {
        std::string frame("\x03\0\0\0\0\0\0\x01\0", 9);
        auto event = wire::decode_terminal_output(frame + "abc", offset);
        REQUIRE(event);
        CHECK(event->data == "abc");
        CHECK(offset == 256 + 3);
    }
    SECTION("errors of format") {
        CHECK_FALSE(wire::decode_terminal_output("", offset));
        CHECK_FALSE(wire::decode_terminal_output("\x03xx", offset));
        CHECK(offset == 10);
    }
    SECTION("texts") {
        auto exit = wire::decode_terminal_text("{\"type\":\"exit\",\"exit_code\":-1}\n");
        REQUIRE(exit);
        CHECK(exit->kind == TerminalEvent::Kind::exit);
        CHECK(exit->exit_code == -1);
        CHECK(wire::decode_terminal_text("{\"type\":\"pong\"}")->kind ==
              TerminalEvent::Kind::other);
        auto failed = wire::decode_terminal_text(
            R"({"type":"error","error":"no shell","code":"START_FAILED"})");
        REQUIRE_FALSE(failed);
        CHECK(failed.error().wire_code() == "START_FAILED");
        CHECK_FALSE(wire::decode_terminal_text("{\"type\":\"exit\"}"));
        CHECK_FALSE(wire::decode_terminal_text("[]"));
    }
}

TEST_CASE("Bodies of code contexts and terminals") {
    CodeRequest request("1+1", "python");
    CHECK(wire::encode_code(request) == R"({"code":"1+1","context":{"language":"python"}})");
    request.context_id = "c";
    request.language.clear();
    CHECK(wire::encode_code(request) == R"({"code":"1+1","context":{"id":"c"}})");
    CHECK(wire::encode_code_context("go", "") == R"({"language":"go"})");
    auto contexts = wire::decode_code_contexts(R"([{"id":"a","language":"bash"}])");
    REQUIRE(contexts);
    CHECK(contexts->at(0).language == "bash");
    CHECK_FALSE(wire::decode_code_contexts("[1]"));
    CHECK_FALSE(wire::decode_code_context(R"({"id":"a"})"));
    CHECK(wire::encode_terminal(TerminalOptions()) == "{}");
    CHECK(wire::encode_resize(80, 24) == R"({"type":"resize","cols":80,"rows":24})");
}
