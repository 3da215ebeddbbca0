#include "kube/watch/frame_splitter.hpp"

#include "kube/watch/event.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace opensandbox;
using namespace opensandbox::kube;

TEST_CASE("lines come out whole, wherever the stream is cut") {
    const std::string stream = "{\"a\":1}\n\n{\"b\":2}\r\n{\"c\":3}\nrest";
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
        FrameSplitter splitter;
        std::vector<std::string> lines;
        for (const std::string& piece : {stream.substr(0, cut), stream.substr(cut)}) {
            REQUIRE(splitter.feed(piece));
            while (auto line = splitter.next())
                lines.emplace_back(*line);
        }
        CHECK(lines == std::vector<std::string>{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"});
    }
}

TEST_CASE("a line without end is refused, many that end are not") {
    FrameSplitter splitter;
    const std::string much(FrameSplitter::kMaxFrame / 2, 'x');
    REQUIRE(splitter.feed(much + "\n" + much + "\n" + much));
    CHECK(splitter.next()->size() == much.size());
    CHECK(splitter.next()->size() == much.size());
    CHECK_FALSE(splitter.next());
    REQUIRE(splitter.feed(much));
    auto refused = splitter.feed("x");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::too_large);
}

TEST_CASE("an event says what became of an object, and where the watch is") {
    auto event = read_event(
        R"({"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"7"},"spec":{}}})",
        nullptr);
    REQUIRE(event);
    CHECK(event->type == WatchEvent::Type::modified);
    CHECK(event->resource_version == "7");
    CHECK(event->object.contains("spec"));
    CHECK_FALSE(event->initial_events_end);
    auto end = read_event(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",)"
                          R"("annotations":{"k8s.io/initial-events-end":"true"}}}})",
                          nullptr);
    REQUIRE(end);
    CHECK(end->type == WatchEvent::Type::bookmark);
    CHECK(end->initial_events_end);
}

TEST_CASE("only what is selected of an object is read, errors whole") {
    const json::Selection selection({"type", "object.metadata.resourceVersion"});
    auto event = read_event(R"({"type":"ADDED","object":{"metadata":{"name":"a",)"
                            R"("resourceVersion":"7"},"spec":{"much":[1,2,3]}}})",
                            &selection);
    REQUIRE(event);
    CHECK(json::serialize(event->object) == R"({"metadata":{"resourceVersion":"7"}})");
    auto error = read_event(R"({"type":"ERROR","object":{"code":410,"reason":"Expired",)"
                            R"("message":"too old resource version"}})",
                            &selection);
    REQUIRE_FALSE(error);
    CHECK(error.error().wire() == "Expired");
    CHECK(error.error().message() == "too old resource version");
}

TEST_CASE("what is no event is refused") {
    for (const char* text :
         {"", "{", "7", "{}", R"({"type":"ADDED"})", R"({"type":"ADDED","object":7})",
          R"({"type":"ADDED","object":{}})", R"({"type":"OTHER","object":{"metadata":{}}})",
          R"({"type":7,"object":{"metadata":{}}})", R"({"type":"ERROR"})",
          R"({"type":"ADDED","object":{"metadata":{"resourceVersion":7}}})"}) {
        INFO(text);
        auto refused = read_event(text, nullptr);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == ErrorCode::protocol);
    }
}
