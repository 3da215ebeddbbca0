#include "sdk/event_stream.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using opensandbox::sdk::ErrorCode;
using opensandbox::sdk::EventStreamParser;

namespace {

using Frames = std::vector<std::string>;

void drain(EventStreamParser& parser, Frames& into) {
    std::string_view frame;
    for (;;) {
        auto found = parser.next(frame);
        REQUIRE(found.has_value());
        if (!*found) return;
        into.emplace_back(frame);
    }
}

Frames parse_in_pieces(std::string_view bytes, std::size_t first, std::size_t then) {
    EventStreamParser parser;
    Frames frames;
    parser.feed(bytes.substr(0, first));
    drain(parser, frames);
    for (std::size_t at = first; at < bytes.size(); at += then) {
        parser.feed(bytes.substr(at, then));
        drain(parser, frames);
    }
    parser.finish();
    drain(parser, frames);
    return frames;
}

/// The stream parsed whole, cut in two at every byte, and byte by byte, gives these frames.
void expect(std::string_view bytes, const Frames& frames) {
    CAPTURE(bytes);
    CHECK(parse_in_pieces(bytes, bytes.size(), 1) == frames);
    CHECK(parse_in_pieces(bytes, 0, 1) == frames);
    for (std::size_t at = 0; at <= bytes.size(); ++at) {
        if (parse_in_pieces(bytes, at, bytes.size() + 1) != frames) {
            FAIL("cut at byte " << at);
        }
    }
}

}  // namespace

TEST_CASE("documents are split at blank lines, wherever the bytes are cut") {
    expect("{\"type\":\"init\"}\n\n{\"type\":\"ping\"}\n\n",
           {R"({"type":"init"})", R"({"type":"ping"})"});
}

TEST_CASE("a document is complete as soon as its blank line is there") {
    EventStreamParser parser;
    parser.feed("{\"a\":1}\n\n");
    Frames frames;
    drain(parser, frames);
    CHECK(frames == Frames{R"({"a":1})"});
}

TEST_CASE("an unterminated document counts at the end of the stream only") {
    EventStreamParser parser;
    parser.feed("{\"code\":\"RUNTIME_ERROR\"}");
    Frames frames;
    drain(parser, frames);
    CHECK(frames.empty());
    parser.finish();
    drain(parser, frames);
    CHECK(frames == Frames{R"({"code":"RUNTIME_ERROR"})"});
}

TEST_CASE("space before, between and after documents is skipped") {
    expect("\r\n \n{\"a\":1}\n\n\n\n{\"b\":2}\n\n\n", {R"({"a":1})", R"({"b":2})"});
}

TEST_CASE("documents may end in CR LF") {
    expect("{\"a\":1}\r\n\r\n{\"b\":2}\r\n\r\n", {R"({"a":1})", R"({"b":2})"});
}

TEST_CASE("a document may have line ends of its own") {
    expect("{\n \"a\":1\n}\n\n{\"b\":2}\n\n", {"{\n \"a\":1\n}", R"({"b":2})"});
}

TEST_CASE("escaped line ends within a document do not split it") {
    expect(R"({"text":"a\n\nb"})"
           "\n\n",
           {R"({"text":"a\n\nb"})"});
}

TEST_CASE("server-sent events are read with every kind of line end") {
    const Frames frames{R"({"a":1})", R"({"b":2})"};
    expect("data: {\"a\":1}\n\ndata:{\"b\":2}\n\n", frames);
    expect("data: {\"a\":1}\r\n\r\ndata: {\"b\":2}\r\n\r\n", frames);
    expect("data: {\"a\":1}\r\rdata: {\"b\":2}\r\r", frames);
}

TEST_CASE("other fields and comments of server-sent events are skipped") {
    expect(
        ": hello\nevent: message\nid: 7\nretry: 10\ndata: {\"a\":1}\n\n: pause\n\ndata: "
        "{\"b\":2}\n\n",
        {R"({"a":1})", R"({"b":2})"});
}

TEST_CASE("several data lines make one document") {
    expect("data: {\"a\":\ndata: 1}\n\n", {"{\"a\":\n1}"});
}

TEST_CASE("an event without data is none") {
    expect("event: x\n\ndata:\n\nid: 3\n\n", {});
}

TEST_CASE("an event that the stream's end cuts off is still handed out") {
    expect("data: {\"a\":1}", {R"({"a":1})"});
    expect("data: {\"a\":1}\n", {R"({"a":1})"});
    expect("data: {\"a\":1}\r", {R"({"a":1})"});
}

TEST_CASE("a stream without bytes has no frames") {
    expect("", {});
}

TEST_CASE("a frame past the limit is refused, complete or not, in both framings") {
    for (std::string_view start : {"{", "data: "}) {
        EventStreamParser parser(64);
        parser.feed(std::string(start) + std::string(100, 'x'));
        std::string_view frame;
        auto found = parser.next(frame);
        REQUIRE(found.has_error());
        CHECK(found.error().code() == ErrorCode::too_large);
        CHECK(found.error().message().find("64") != std::string::npos);
    }
    EventStreamParser parser(64);
    parser.feed("{" + std::string(100, 'x') + "}\n\n");
    std::string_view frame;
    CHECK(parser.next(frame).has_error());
}

TEST_CASE("many data lines together obey the limit") {
    EventStreamParser parser(64);
    for (int i = 0; i < 10; ++i)
        parser.feed("data: 0123456789\n");
    std::string_view frame;
    CHECK(parser.next(frame).has_error());
}

TEST_CASE("a long stream of small frames keeps its order through buffer moves") {
    EventStreamParser parser;
    std::string all;
    for (int i = 0; i < 20000; ++i)
        all += "{\"n\":" + std::to_string(i) + "}\n\n";
    Frames frames;
    for (std::size_t at = 0; at < all.size(); at += 977) {
        parser.feed(std::string_view(all).substr(at, 977));
        drain(parser, frames);
    }
    REQUIRE(frames.size() == 20000);
    for (int i = 0; i < 20000; ++i) {
        if (frames[static_cast<std::size_t>(i)] != "{\"n\":" + std::to_string(i) + "}")
            FAIL("at " << i);
    }
}
