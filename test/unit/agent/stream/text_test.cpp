#include "agent/api/line_form.hpp"
#include "agent/process/entrypoint.hpp"
#include "agent/stream/event.hpp"
#include "agent/stream/line_splitter.hpp"
#include "base/json_string.hpp"
#include "json/document.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <vector>

using namespace opensandbox;
using namespace opensandbox::agent;

namespace {

using Texts = std::vector<std::string>;

std::string quoted(std::string_view bytes) {
    std::string out;
    append_json_string(out, bytes);
    return out;
}

/// Feeds the pieces, then ends.
Texts split(const Texts& pieces, LineForm form = LineForm::exact, std::size_t limit = 65536) {
    Texts out;
    LineSplitter splitter(form, limit);
    auto emit = [&](std::string_view text) { out.emplace_back(text); };
    for (const std::string& piece : pieces)
        splitter.feed(piece, emit);
    splitter.finish(emit);
    return out;
}

}  // namespace

TEST_CASE("JSON strings escape what must be escaped and nothing else") {
    CHECK(quoted("") == "\"\"");
    CHECK(quoted("plain text, 0123456789 </&>") == "\"plain text, 0123456789 </&>\"");
    CHECK(quoted("a\"b\\c") == R"("a\"b\\c")");
    CHECK(quoted("\n\r\t") == R"("\n\r\t")");
    CHECK(quoted(std::string("\0\x01\x1f", 3)) == R"("\u0000\u0001\u001f")");
    CHECK(quoted("\x7f") == "\"\x7f\"");
    CHECK(quoted("åäö € 😀") == "\"åäö € 😀\"");
}

TEST_CASE("JSON strings find a special byte at every position of a long run") {
    for (std::size_t at = 0; at < 24; ++at) {
        std::string text(24, 'x');
        text[at] = '"';
        std::string expected =
            "\"" + std::string(at, 'x') + "\\\"" + std::string(23 - at, 'x') + "\"";
        CHECK(quoted(text) == expected);
    }
}

TEST_CASE("Bytes that are no UTF-8 become one replacement for each ill-formed part") {
    const std::string bad = "\xef\xbf\xbd";
    CHECK(quoted("a\xff"
                 "b") == "\"a" + bad + "b\"");
    CHECK(quoted("\xc3") == "\"" + bad + "\"");
    CHECK(quoted("\xe2\x82") == "\"" + bad + "\"");
    CHECK(quoted("\xe2\x82x") == "\"" + bad + "x\"");
    CHECK(quoted("\xc0\xaf") == "\"" + bad + bad + "\"");
    CHECK(quoted("\xed\xa0\x80") == "\"" + bad + bad + bad + "\"");
    CHECK(quoted("\xf4\x90\x80\x80") == "\"" + bad + bad + bad + bad + "\"");
    CHECK(quoted("\xf0\x9f\x98") == "\"" + bad + "\"");
}

TEST_CASE("Any bytes make a JSON string that parses") {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        std::string bytes(random() % 64, '\0');
        for (char& c : bytes)
            c = static_cast<char>(random());
        INFO(round);
        CHECK(json::parse(quoted(bytes)).has_value());
    }
}

TEST_CASE("The incomplete character at the end is measured") {
    CHECK(incomplete_utf8_tail("") == 0);
    CHECK(incomplete_utf8_tail("abc") == 0);
    CHECK(incomplete_utf8_tail("é") == 0);
    CHECK(incomplete_utf8_tail("a\xc3") == 1);
    CHECK(incomplete_utf8_tail("a\xe2\x82") == 2);
    CHECK(incomplete_utf8_tail("\xf0\x9f\x98") == 3);
    CHECK(incomplete_utf8_tail("\xf0\x9f\x98\x80") == 0);
    CHECK(incomplete_utf8_tail("\x80\x80\x80") == 0);
    CHECK(incomplete_utf8_tail("\xff") == 0);
    // No character begins so: there is nothing to wait for.
    CHECK(incomplete_utf8_tail("\xe0\x80") == 0);
}

TEST_CASE("Every line comes with its terminator as one text") {
    CHECK(split({"a\nb\r\nc\rd"}) == Texts{"a\n", "b\r\n", "c\r", "d"});
    CHECK(split({"\n\n"}) == Texts{"\n", "\n"});
    CHECK(split({"one\n"}) == Texts{"one\n"});
    CHECK(split({""}).empty());
}

TEST_CASE("Where pieces end makes no difference") {
    const std::string all = "alpha\r\nbeta\rgamma\n\r\n\n\rdelta\r";
    const Texts whole = split({all});
    for (std::size_t first = 0; first <= all.size(); ++first) {
        for (std::size_t second = first; second <= all.size(); ++second) {
            Texts pieces{all.substr(0, first), all.substr(first, second - first),
                         all.substr(second)};
            INFO(first << " " << second);
            REQUIRE(split(pieces) == whole);
        }
    }
}

TEST_CASE("A carriage return at the end of a piece waits for the next byte") {
    Texts out;
    auto emit = [&](std::string_view text) { out.emplace_back(text); };
    LineSplitter splitter(LineForm::exact);
    splitter.feed("50%\r", emit);
    CHECK(out.empty());
    CHECK(splitter.has_fragment());
    splitter.feed("60%", emit);
    CHECK(out == Texts{"50%\r"});
}

TEST_CASE("An idle flush gives the unfinished line without half a character") {
    Texts out;
    auto emit = [&](std::string_view text) { out.emplace_back(text); };
    LineSplitter splitter(LineForm::exact);
    splitter.feed("name: \xe2\x82", emit);
    splitter.flush_idle(emit);
    CHECK(out == Texts{"name: "});
    CHECK_FALSE(splitter.has_fragment());
    splitter.feed("\xac\n", emit);
    CHECK(out == Texts{"name: ", "€\n"});
}

TEST_CASE("An idle flush lets a held carriage return go") {
    Texts out;
    auto emit = [&](std::string_view text) { out.emplace_back(text); };
    LineSplitter splitter(LineForm::exact);
    splitter.feed("x\r", emit);
    splitter.flush_idle(emit);
    splitter.feed("\ny", emit);
    splitter.finish(emit);
    CHECK(out == Texts{"x\r", "\n", "y"});
}

TEST_CASE("Long lines come in fragments that lose nothing and split no character") {
    std::string line;
    for (int i = 0; i < 100; ++i)
        line += "€é😀x";
    line += "\r\n";
    for (std::size_t limit = 8; limit < 40; ++limit) {
        Texts whole = split({line}, LineForm::exact, limit);
        Texts dribbled;
        for (char c : line)
            dribbled.emplace_back(1, c);
        Texts pieces = split(dribbled, LineForm::exact, limit);
        for (const Texts& texts : {whole, pieces}) {
            std::string joined;
            for (const std::string& text : texts) {
                INFO(limit << " " << text);
                CHECK(text.size() <= limit);
                CHECK(incomplete_utf8_tail(text) == 0);
                CHECK(quoted(text).find("\xef\xbf\xbd") == std::string::npos);
                joined += text;
            }
            CHECK(joined == line);
        }
    }
}

TEST_CASE("The stripped form cuts terminators and says a blank line as a line feed") {
    CHECK(split({"a\nb\r\n\nc\rd"}, LineForm::stripped) == Texts{"a", "b", "\n", "c", "d"});
    LineSplitter splitter(LineForm::stripped);
    Texts out;
    auto emit = [&](std::string_view text) { out.emplace_back(text); };
    splitter.feed("prompt", emit);
    splitter.flush_idle(emit);
    CHECK(out.empty());
}

TEST_CASE("Clients before 1.1 are known by their User-Agent") {
    CHECK(line_form_for("OpenSandbox-Python-SDK/0.1.9") == LineForm::stripped);
    CHECK(line_form_for("OpenSandbox-Kotlin-SDK/1.0.3") == LineForm::stripped);
    CHECK(line_form_for("OpenSandbox-Python-SDK/1.1.1") == LineForm::exact);
    CHECK(line_form_for("OpenSandbox-Python-SDK/1.10.0") == LineForm::exact);
    CHECK(line_form_for("OpenSandbox-Python-SDK/2.0.0") == LineForm::exact);
    CHECK(line_form_for("OpenSandbox-Python-SDK/dev") == LineForm::exact);
    CHECK(line_form_for("curl/8.0") == LineForm::exact);
    CHECK(line_form_for("") == LineForm::exact);
}

TEST_CASE("Events are one JSON line and a blank one, with the members of the contract") {
    EventWriter events;
    events.at(17);
    events.init("abc");
    events.ping();
    events.output(EventWriter::Stream::standard_output, "x\n");
    events.output(EventWriter::Stream::standard_error, "");
    events.complete(0);
    events.complete(5);
    events.error("CommandExecError", "2", {"exit status 2"});
    CHECK(events.buffer() ==
          "{\"type\":\"init\",\"text\":\"abc\",\"timestamp\":17}\n\n"
          "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":17}\n\n"
          "{\"type\":\"stdout\",\"text\":\"x\\n\",\"timestamp\":17}\n\n"
          "{\"type\":\"execution_complete\",\"timestamp\":17}\n\n"
          "{\"type\":\"execution_complete\",\"execution_time\":5,\"timestamp\":17}\n\n"
          "{\"type\":\"error\",\"timestamp\":17,\"error\":{\"ename\":\"CommandExecError\","
          "\"evalue\":\"2\",\"traceback\":[\"exit status 2\"]}}\n\n");
}

TEST_CASE("The output ring keeps the last bytes whatever the pieces are") {
    const std::string all = "abcdefghijklmnopqrstuvwxyz0123456789";
    for (std::size_t step = 1; step <= all.size(); ++step) {
        OutputRing ring(10);
        for (std::size_t at = 0; at < all.size(); at += step)
            ring.append(all.substr(at, step));
        INFO(step);
        CHECK(ring.contents() == "0123456789");
        CHECK(ring.total() == all.size());
    }
    OutputRing ring(10);
    ring.append("short");
    CHECK(ring.contents() == "short");
}
