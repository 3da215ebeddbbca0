#include "cli/document.hpp"

#include "cli/terminal.hpp"
#include "sdk/document/describe.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::cli;

namespace {

json::value document_of(std::string_view text) {
    auto document = json::parse(text);
    REQUIRE(document.has_value());
    return *document;
}

/// One text as the value of a YAML member.
std::string yaml_of(std::string_view text) {
    const std::string line = to_yaml_text(json::object{{"k", text}});
    REQUIRE(line.starts_with("k: "));
    REQUIRE(line.ends_with("\n"));
    return line.substr(3, line.size() - 4);
}

}  // namespace

TEST_CASE("JSON is indented by two, in the order of the members") {
    CHECK(
        to_json_text(document_of(R"({"b":1,"a":[1,{"x":null}],"e":[],"o":{},"t":true,"d":2.0})")) ==
        "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    {\n      \"x\": null\n    }\n  ],\n  \"e\": [],\n"
        "  \"o\": {},\n  \"t\": true,\n  \"d\": 2.0\n}\n");
    CHECK(to_json_text(document_of(R"(["a\"b\n"])")) == "[\n  \"a\\\"b\\n\"\n]\n");
    CHECK(to_json_text(json::array()) == "[]\n");
}

TEST_CASE("numbers keep a point and are as short as they can be") {
    CHECK(to_number_text(2) == "2.0");
    CHECK(to_number_text(97.9) == "97.9");
    CHECK(to_number_text(1005.6875) == "1005.6875");
    CHECK(to_number_text(-0.1) == "-0.1");
    CHECK(to_number_text(1e300) == "1e+300");
}

TEST_CASE("YAML sorts members and keeps lists at their key") {
    CHECK(
        to_yaml_text(document_of(
            R"({"b":{"w":1,"v":null},"a":["p",{"t":1,"s":2},["q"]],"c":[],"d":{},"f":2.5,"g":true})")) ==
        "a:\n- p\n- s: 2\n  t: 1\n- - q\nb:\n  v: null\n  w: 1\nc: []\nd: {}\nf: 2.5\ng: true\n");
    CHECK(to_yaml_text(document_of(R"([{"b":1,"a":[1]},"x"])")) == "- a:\n  - 1\n  b: 1\n- x\n");
    CHECK(to_yaml_text(json::array()) == "[]\n");
}

TEST_CASE("YAML leaves plain text plain") {
    for (const char* text : {"host", "python:3.12", "/tmp/a b", "a#b", "Written", "grüße", "x=y",
                             "-x", "sb-1", "Sandbox is running.", "a,b", "it's"}) {
        CAPTURE(text);
        CHECK(yaml_of(text) == text);
    }
}

TEST_CASE("YAML quotes what a reader would take for something else") {
    for (const char* text : {"",           " ",
                             "x ",         " x",
                             "true",       "No",
                             "NULL",       "~",
                             "on",         "12",
                             "-3",         "+1",
                             "1.5",        ".5",
                             "1e3",        "0x1f",
                             "0o17",       "1_000",
                             "0:10:00",    "12:30",
                             "2026-01-01", "2026-01-01T00:00:00Z",
                             "a: b",       "a #b",
                             "#x",         "- x",
                             "-",          "?",
                             "? x",        ":",
                             ": x",        "x:",
                             "[a]",        "{a}",
                             "*a",         "&a",
                             "!a",         "|",
                             ">",          "@a",
                             "`a",         "%a",
                             "'a'",        "\"a\"",
                             ",a",         "---",
                             ".inf",       ".nan",
                             "=",          "<<"}) {
        CAPTURE(text);
        std::string expected = "'";
        for (char c : std::string_view(text))
            expected += c == '\'' ? std::string("''") : std::string(1, c);
        CHECK(yaml_of(text) == expected + "'");
    }
}

TEST_CASE("YAML escapes control characters") {
    CHECK(yaml_of("a\nb\t\"\\") == R"("a\nb\t\"\\")");
    CHECK(yaml_of(std::string_view("\0\x1b[31m", 6)) == R"("\x00\x1b[31m")");
}

TEST_CASE("YAML quotes member names like any text") {
    CHECK(to_yaml_text(json::object{{"yes", 1}, {"a: b", 2}}) == "'a: b': 2\n'yes': 1\n");
}

TEST_CASE("tables align by characters and show what is absent") {
    const json::value rows =
        document_of(R"([{"id":"a","status":{"state":"Running"}},{"id":"grüße","x":1}])");
    CHECK(to_table_text(rows.get_array(), {{"ID", "id"}, {"STATUS", "status.state"}, {"N", "x"}}) ==
          "ID     STATUS   N\na      Running  -\ngrüße  -        1\n");
    CHECK(to_table_text({}, {{"ID", "id"}}) == "ID\n");
}

TEST_CASE("cells hold one line and no control characters") {
    CHECK(to_cell_text(json::value("a\nb\x1b[31m")) == "a b [31m");
    CHECK(to_cell_text(json::value("")) == "-");
    CHECK(to_cell_text(document_of(R"(["a","b"])")) == "a b");
    CHECK(to_cell_text(document_of(R"({"a":1,"b":null,"c":"x"})")) == "a=1, c=x");
    CHECK(to_cell_text(document_of("{}")) == "-");
    CHECK(to_key_value_text(document_of(R"({"id":"x","status":null})").get_object()) ==
          "id      x\nstatus  -\n");
}

TEST_CASE("metrics are described with the contract's members") {
    sdk::Metrics metrics;
    metrics.cpu_count = 2;
    CHECK(to_json_text(describe(metrics))
              .find("\"cpu_count\": 2.0,\n  \"cpu_used_percentage\": 0.0") != std::string::npos);
}

TEST_CASE("progress says how much, of how much, and how fast") {
    CHECK(to_size_text(999) == "999 B");
    CHECK(to_size_text(1500) == "1.5 kB");
    CHECK(to_size_text(12'345'678) == "12.3 MB");
    CHECK(to_progress_text("/x", 1'000'000, 4'000'000, 0.5) ==
          "/x  1.0 MB of 4.0 MB (25 %)  2.0 MB/s");
    CHECK(to_progress_text("/x", 500, 0, 0) == "/x  500 B");
}
