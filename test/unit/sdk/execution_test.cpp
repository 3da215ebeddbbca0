#include "opensandbox/commands.hpp"
#include "sdk/wire.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::sdk;

namespace {

Execution after(std::string_view frame) {
    auto event = wire::decode_event(frame);
    REQUIRE(event.has_value());
    Execution execution;
    REQUIRE(apply_terminal_event(*event, execution));
    return execution;
}

Execution after_error(const std::string& value, const std::string& trace) {
    return after(R"({"type":"error","error":{"ename":"CommandExecError","evalue":")" + value +
                 R"(","traceback":[")" + trace + R"("]},"timestamp":1})");
}

}  // namespace

TEST_CASE("execution_complete is exit code 0 with its duration") {
    auto execution = after(R"({"type":"execution_complete","execution_time":7,"timestamp":1})");
    CHECK(execution.exit_code == 0);
    CHECK(execution.duration == std::chrono::milliseconds(7));
    CHECK_FALSE(execution.error);
}

TEST_CASE("the exit code is the error's value") {
    auto execution = after_error("42", "exit status 42");
    CHECK(execution.exit_code == 42);
    CHECK_FALSE(execution.signal);
    CHECK(execution.error->name == "CommandExecError");
}

TEST_CASE("a signal in the trace gives 128 + n") {
    CHECK(after_error("-1", "signal: killed").exit_code == 137);
    CHECK(after_error("-1", "signal: killed").signal == 9);
    CHECK(after_error("-1", "signal: terminated").exit_code == 143);
    CHECK(after_error("-1", "signal: interrupt").exit_code == 130);
    CHECK(after_error("-1", "signal: segmentation fault (core dumped)").exit_code == 139);
    CHECK(after_error("-1", "signal: signal 34").exit_code == 162);
}

TEST_CASE("an unknown signal leaves the value as it came") {
    CHECK(after_error("-1", "signal: something else").exit_code == -1);
    CHECK(after_error("-1", "signal: signal 99").exit_code == -1);
}

TEST_CASE("a start failure has no exit code") {
    auto execution = after_error("exec: no such file or directory", "");
    CHECK_FALSE(execution.exit_code);
    CHECK(execution.error->value == "exec: no such file or directory");
}

TEST_CASE("a bare error object in the stream is an error event") {
    auto execution = after(R"({"code":"RUNTIME_ERROR","message":"broken"})");
    CHECK_FALSE(execution.exit_code);
    CHECK(execution.error->name == "RUNTIME_ERROR");
    CHECK(execution.error->value == "broken");
}

TEST_CASE("output and pings do not end an execution") {
    Execution execution;
    for (auto type : {EventType::init, EventType::standard_output, EventType::standard_error,
                      EventType::ping, EventType::result, EventType::other}) {
        Event event;
        event.type = type;
        CHECK_FALSE(apply_terminal_event(event, execution));
    }
}

TEST_CASE("events carry what they carry on the wire") {
    auto event =
        wire::decode_event(R"({"type":"stdout","text":"a<b>\u0000\n","timestamp":1795297408856})");
    REQUIRE(event.has_value());
    CHECK(event->type == EventType::standard_output);
    CHECK(event->text == std::string("a<b>\0\n", 6));
    CHECK(event->timestamp == 1795297408856);

    auto result = wire::decode_event(
        R"({"type":"result","results":{"text":"4","image/png":"aGk="},"timestamp":1})");
    REQUIRE(result.has_value());
    CHECK(result->results ==
          std::vector<std::pair<std::string, std::string>>{{"text", "4"}, {"image/png", "aGk="}});

    auto unknown = wire::decode_event(R"({"type":"later","timestamp":1})");
    REQUIRE(unknown.has_value());
    CHECK(unknown->type == EventType::other);
}

TEST_CASE("an event that is none is a protocol error that says why") {
    for (std::string_view frame :
         {"", "[]", "{", R"({"text":"x"})", R"({"type":3})", R"({"type":"error","error":7})",
          R"({"type":"stdout","text":1})"}) {
        auto event = wire::decode_event(frame);
        CAPTURE(frame);
        REQUIRE(event.has_error());
        CHECK(event.error().code() == ErrorCode::protocol);
        CHECK_FALSE(event.error().message().empty());
    }
}

TEST_CASE("plain output takes the short cut and means the same as without it") {
    for (std::string_view frame :
         {R"({"type":"stdout","text":"hello\n","timestamp":1795297408856})",
          R"({"type":"stderr","text":"","timestamp":0})",
          R"({"timestamp":1,"text":"x","type":"stdout"})",
          R"({"type":"stdout","text":"\u003ca\u003e \"\\\/\b\f\r\t\u0000","timestamp":1})",
          R"({"type":"stdout"})"}) {
        CAPTURE(frame);
        auto event = wire::scan_output_event(frame);
        REQUIRE(event);
        auto any = wire::decode_any_event(frame);
        REQUIRE(any.has_value());
        CHECK(event->type == any->type);
        CHECK(event->text == any->text);
        CHECK(event->timestamp == any->timestamp);
    }
}

TEST_CASE("what is not plain output does not take the short cut") {
    for (std::string_view frame : {"",
                                   "{",
                                   "{}",
                                   R"({"type":"init","text":"x"})",
                                   R"({"type":"stdout","text":"grün"})",
                                   R"({"type":"stdout","text":"\u00fc"})",
                                   R"({"type":"stdout","text":"\ud83d\ude00"})",
                                   R"({"type":"stdout","text":"a)",
                                   R"({"type":"stdout","text":"\x"})",
                                   R"({"type":"stdout","text":"a","text":"b"})",
                                   R"({"type":"stdout","extra":1})",
                                   R"({"type":"stdout","timestamp":01})",
                                   R"({"type":"stdout","timestamp":-1})",
                                   R"({"type":"stdout","timestamp":1.5})",
                                   R"({"type":"stdout","timestamp":12345678901234567890})",
                                   R"({"type":"stdout","timestamp":})",
                                   R"({"type":"stdout"}x)",
                                   R"({"type":"stdout",})",
                                   R"({ "type":"stdout"})",
                                   R"({"text":"x"})",
                                   "{\"type\":\"stdout\",\"text\":\"a\nb\"}"}) {
        CAPTURE(frame);
        CHECK_FALSE(wire::scan_output_event(frame));
    }
}
