#include "imagebuild/ignore.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::imagebuild;

namespace {

IgnoreRules rules(std::string_view text) {
    auto parsed = IgnoreRules::parse(text, ".dockerignore");
    REQUIRE(parsed);
    return std::move(*parsed);
}

bool matches(std::string_view pattern, std::string_view path,
             PathPattern::Deep deep = PathPattern::Deep::yes) {
    auto parsed = PathPattern::parse(pattern, deep);
    REQUIRE(parsed);
    return parsed->matches(path);
}

}  // namespace

TEST_CASE("wildcards stay within one part of a path") {
    CHECK(matches("*.txt", "a.txt"));
    CHECK_FALSE(matches("*.txt", "d/a.txt"));
    CHECK(matches("d/*", "d/a"));
    CHECK_FALSE(matches("d/*", "d/a/b"));
    CHECK(matches("a?c", "abc"));
    CHECK_FALSE(matches("a?c", "a/c"));
    CHECK(matches("[a-c]x[^0-9]", "bxy"));
    CHECK_FALSE(matches("[a-c]x[^0-9]", "bx1"));
    CHECK(matches("\\*", "*"));
    CHECK_FALSE(matches("\\*", "a"));
    CHECK(matches("[]]", "]"));
    CHECK_FALSE(PathPattern::parse("a[b", PathPattern::Deep::yes));
}

TEST_CASE("two stars match any number of parts where they are asked for") {
    CHECK(matches("**/x", "x"));
    CHECK(matches("**/x", "a/b/x"));
    CHECK_FALSE(matches("**/x", "ax"));
    CHECK(matches("a/**/z", "a/z"));
    CHECK(matches("a/**/z", "a/b/c/z"));
    CHECK(matches("a/**", "a/b/c"));
    CHECK(matches("**", "a/b"));
    CHECK(matches("**/*.go", "x/y.go"));
    CHECK_FALSE(matches("**/x", "a/x", PathPattern::Deep::no) !=
                matches("*/x", "a/x", PathPattern::Deep::no));
    CHECK_FALSE(matches("**/x", "a/b/x", PathPattern::Deep::no));
}

TEST_CASE("a long pattern of stars is no burden") {
    std::string pattern;
    for (int i = 0; i < 500; ++i)
        pattern += "*a";
    CHECK_FALSE(matches(pattern, std::string(4000, 'b')));
}

TEST_CASE("what a rule matches is ignored with all below") {
    const IgnoreRules ignore = rules("# comment\n\nnode_modules\n/build/\n*.log\n**/*.tmp\r\n");
    CHECK(ignore.ignores("node_modules"));
    CHECK(ignore.ignores("node_modules/a/b"));
    CHECK_FALSE(ignore.ignores("src/node_modules"));
    CHECK(ignore.ignores("build/x"));
    CHECK(ignore.ignores("a.log"));
    CHECK_FALSE(ignore.ignores("d/a.log"));
    CHECK(ignore.ignores("d/e/a.tmp"));
    CHECK_FALSE(ignore.has_exceptions());
}

TEST_CASE("an exclamation mark takes back, the last rule decides") {
    const IgnoreRules ignore = rules("*\n!src\nsrc/secret\n! src/secret/not\n");
    CHECK(ignore.has_exceptions());
    CHECK(ignore.ignores("other"));
    CHECK_FALSE(ignore.ignores("src"));
    CHECK_FALSE(ignore.ignores("src/a"));
    CHECK(ignore.ignores("src/secret/x"));
    CHECK_FALSE(ignore.ignores("src/secret/not"));
}

TEST_CASE("broken rules are refused with their line") {
    auto parsed = IgnoreRules::parse("a\n[b\n", "x/.dockerignore");
    REQUIRE(!parsed);
    CHECK(parsed.error().message().find("x/.dockerignore:2: ") == 0);
    CHECK(!IgnoreRules::parse("../a\n", "f"));
    CHECK(!IgnoreRules::parse("!\n", "f"));
}

TEST_CASE("paths are cleaned and do not leave their directory") {
    CHECK(*clean_path("./a//b/../c/.") == "a/c");
    CHECK(*clean_path("/") == "");
    CHECK(!clean_path("a/../../b"));
    CHECK(clean_absolute_path("/a/../../b/") == "/b");
    CHECK(clean_absolute_path("") == "/");
}
