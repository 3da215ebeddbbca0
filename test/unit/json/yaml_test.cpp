#include "json/yaml.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using opensandbox::json::parse_yaml;

namespace {

std::string read(std::string_view text) {
    auto document = parse_yaml(text);
    INFO((document ? std::string() : document.error().message()));
    REQUIRE(document.has_value());
    return json::serialize(*document);
}

std::string refused(std::string_view text) {
    auto document = parse_yaml(text);
    REQUIRE_FALSE(document.has_value());
    CHECK(document.error().code() == ErrorCode::invalid_argument);
    return document.error().message();
}

}  // namespace

TEST_CASE("YAML documents become JSON ones") {
    CHECK(read("a: 1\nb:\n  - x\n  - {y: z}\n") == R"({"a":1,"b":["x",{"y":"z"}]})");
    CHECK(read("{\"a\": [1, 2.5, true, null, \"\"]}") == R"({"a":[1,2.5E0,true,null,""]})");
    CHECK(read("text: |\n  one\n  two\n") == R"({"text":"one\ntwo\n"})");
    CHECK(read("") == "null");
    CHECK(read("--- # only this\n- 'it''s'\n") == R"(["it's"])");
}

TEST_CASE("plain words are what the core schema says, quoted ones are texts") {
    CHECK(read("[true, True, false, ~, null, -7, +3, 1e3, .5]") ==
          "[true,true,false,null,null,-7,3,1E3,5E-1]");
    CHECK(read("[yes, no, on, 0:10:00, 1.2.3, 12ab, inf, nan, '1', \"true\"]") ==
          R"(["yes","no","on","0:10:00","1.2.3","12ab","inf","nan","1","true"])");
}

TEST_CASE("what could mean anything else than it shows is refused, by line and without quoting") {
    CHECK(refused("a: &x secret\nb: 1\n").find("line 1: anchors") == 0);
    CHECK(refused("a: 1\nb: *a\n").find("line 2") == 0);
    CHECK(refused("a: !!binary c2VjcmV0\n").find("tags") != std::string::npos);
    CHECK(refused("a: 1\na: 2\n").find("line 2: a key is there twice") == 0);
    CHECK(refused("? [1]\n: 2\n").find("a key must be a text") != std::string::npos);
    CHECK(refused("a: 1\n---\nb: 2\n").find("only one document") != std::string::npos);
    CHECK(refused(std::string(100, '[') + std::string(100, ']')).find("64 levels") !=
          std::string::npos);
    for (const char* text : {"a: [secret", "a: 'secret", "\tsecret: 1", "a: b: secret"}) {
        CHECK(refused(text).find("secret") == std::string::npos);
    }
    CHECK_FALSE(refused(std::string("a: \xff\xfe", 5)).empty());
}
