#include "http/chunk_decoder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using opensandbox::http::ChunkDecoder;
using State = ChunkDecoder::State;

namespace {

struct Decoded {
    bool done = false;
    bool malformed = false;
    std::string data;
    std::string rest;
};

/// Feeds `bytes` in pieces of `step`, as a connection would deliver them.
Decoded decode(const std::string& bytes, std::size_t step) {
    ChunkDecoder decoder;
    Decoded result;
    std::string held;
    std::size_t fed = 0;
    while (true) {
        auto got = decoder.next(held);
        held.erase(0, got.used);
        result.malformed = got.state == State::malformed;
        result.done = got.state == State::done;
        if (result.malformed || result.done) break;
        if (got.state == State::data && !held.empty()) {
            auto count = std::min<std::uint64_t>(held.size(), decoder.remaining());
            result.data += held.substr(0, count);
            held.erase(0, count);
            decoder.take(count);
            continue;
        }
        if (fed == bytes.size()) break;
        held += bytes.substr(fed, step);
        fed = std::min(bytes.size(), fed + step);
    }
    result.rest = held;
    if (fed < bytes.size()) result.rest += bytes.substr(fed);
    return result;
}

}  // namespace

TEST_CASE("chunks decode whatever pieces they come in", "[http][chunked]") {
    std::string bytes =
        "5\r\nhello\r\n00A;name=\"v\"\r\n0123456789\r\n1 \t;x\r\n!\r\n"
        "0\r\nTrailer: a\r\nOther: b\r\n\r\nNEXT";
    for (std::size_t step = 1; step <= bytes.size(); ++step) {
        auto result = decode(bytes, step);
        CHECK(result.done);
        CHECK(result.data == "hello0123456789!");
        CHECK(result.rest == "NEXT");
    }
}

TEST_CASE("malformed chunks are refused", "[http][chunked]") {
    auto bytes = GENERATE("\r\n", "x\r\n", "-1\r\n", "+1\r\na\r\n", "0x1\r\na\r\n", " 1\r\na\r\n",
                          "1 \r\na\r\n", "1\na\r\n", "1\r\nab\r\n", "1\r\na\n", "1\r\na\rb",
                          "1000000000000000\r\n", "ffffffffffffffff\r\n", "1;a\nb\r\n",
                          "1;a\rb\r\n", "0\r\nA: b\nC\r\n\r\n", "0\r\n\n");
    CAPTURE(bytes);
    for (std::size_t step : {std::size_t(1), std::size_t(1000)}) {
        auto result = decode(bytes, step);
        CHECK(result.malformed);
        CHECK_FALSE(result.done);
    }
}

TEST_CASE("unfinished chunked bodies are not taken for finished", "[http][chunked]") {
    auto bytes = GENERATE("", "5", "5\r", "5\r\n", "5\r\nhel", "5\r\nhello", "5\r\nhello\r",
                          "5\r\nhello\r\n", "0\r\n", "0\r\n\r", "0\r\nA: b\r\n");
    auto result = decode(bytes, 1000);
    CHECK_FALSE(result.done);
    CHECK_FALSE(result.malformed);
}

TEST_CASE("size lines and trailers have limits", "[http][chunked]") {
    CHECK(decode("1;" + std::string(5000, 'x') + "\r\na\r\n", 100).malformed);
    std::string trailers = "0\r\n";
    for (int i = 0; i < 40; ++i)
        trailers += "A: " + std::string(500, 'x') + "\r\n";
    CHECK(decode(trailers + "\r\n", 100).malformed);
    CHECK(decode("0\r\nA: " + std::string(17'000, 'x'), 100).malformed);
}
