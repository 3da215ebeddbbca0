#include "json/selection.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

namespace {

std::string selected(std::string_view text, const std::vector<std::string>& paths) {
    auto made = json::parse_selected(text, json::Selection(paths));
    return made ? json::serialize(*made) : made.error().message();
}

}  // namespace

TEST_CASE("only what is selected of a document is built, whole below the end of a path") {
    constexpr std::string_view kPod =
        R"({"kind":"Pod","metadata":{"name":"a","annotations":{"x.y/z":"1","w":[{"v":2}]},)"
        R"("managedFields":[{"f":{"name":"b"}}]},"spec":{"name":"c"},"status":{"phase":"Running"}})";
    CHECK(selected(kPod, {"metadata.name", "metadata.annotations", "status.phase"}) ==
          R"({"metadata":{"name":"a","annotations":{"x.y/z":"1","w":[{"v":2}]}},)"
          R"("status":{"phase":"Running"}})");
    CHECK(selected(kPod, {"spec", "spec.name", "none.there"}) == R"({"spec":{"name":"c"}})");
    CHECK(selected(kPod, {"spec.name", "spec"}) == R"({"spec":{"name":"c"}})");
    CHECK(selected(kPod, {}) == "{}");
}

TEST_CASE("a path goes into every element of a list") {
    CHECK(selected(R"({"items":[{"a":1,"b":{"c":2,"d":3}},{"b":{"c":4}},{"a":5}],"c":6})",
                   {"items.b.c"}) == R"({"items":[{"b":{"c":2}},{"b":{"c":4}},{}]})");
    CHECK(selected(R"([[{"a":1,"b":2}],[]])", {"a"}) == R"([[{"a":1}],[]])");
    CHECK(selected(R"({"skipped":[[1],{"a":[2]}],"a":3})", {"a"}) == R"({"a":3})");
}

TEST_CASE("what is no object where a selection goes on stays as it is") {
    CHECK(selected(R"({"a":5,"b":null,"c":[1,{"d":2,"e":3},"x"],"f":1})", {"a.x", "b.x", "c.d"}) ==
          R"({"a":5,"b":null,"c":[1,{"d":2},"x"]})");
    CHECK(selected("true", {"a"}) == "true");
}

TEST_CASE("the last of members of the same name is selected") {
    CHECK(selected(R"({"a":{"b":1},"a":{"c":2},"d":1})", {"a.b"}) == R"({"a":{}})");
    CHECK(selected(R"({"a":{"b":1},"a":7})", {"a.b"}) == R"({"a":7})");
    CHECK(selected(R"({"a":{"b":1,"b":2}})", {"a"}) == R"({"a":{"b":2}})");
}

TEST_CASE("names and texts with escapes are selected by what they say") {
    CHECK(selected(R"({"\u0061b":"x\ny\u00e9","c":"\u00e9\n"})", {"ab"}) == R"({"ab":"x\nyé"})");
    const std::string lengthy(100'000, 'x');
    CHECK(selected("{\"" + lengthy + "\\n\":1,\"" + lengthy + "\":2}", {lengthy}) ==
          "{\"" + lengthy + "\":2}");
}

TEST_CASE("what is skipped is refused as it is when it is read") {
    for (std::string_view text :
         {"", " ", "{", R"({"a":1)", R"({"a":})", R"({"a":01})", R"({"a":"\x"})", R"({"a":tru})",
          "{\"a\":\"\xff\"}", R"({"b":1} x)", R"({"b":1}])", "{\"b\":1}\n 2", R"({"a":1e999})",
          R"({"b":1,})", "nul", "1 2"}) {
        CAPTURE(text);
        auto whole = json::parse(text);
        REQUIRE(whole.has_error());
        CHECK(selected(text, {"b"}) == whole.error().message());
    }
    CHECK(selected(R"({"a":1e999,"a":1,"b":2})", {"b"}) == R"({"b":2})");
}

TEST_CASE("a skipped part may have as many levels as one that is read") {
    auto nested = [](int levels) {
        return R"({"a":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
    };
    CHECK(selected(nested(64), {"b"}) == "{}");
    CHECK(selected(nested(65), {"b"}) == json::parse(nested(65)).error().message());
    CHECK(selected(nested(64), {"a.b"}) == nested(64));
}
