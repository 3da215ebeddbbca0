#include "imagebuild/expansion.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::imagebuild;

namespace {

const Variables kVariables{{"A", "one"}, {"EMPTY", ""}, {"B_2", "two words"}, {"Q", "a'b\"c"}};

std::string value_of(std::string_view word, char escape = '\\') {
    auto value = expand(word, kVariables, escape);
    INFO(word);
    REQUIRE(value);
    return *value;
}

bool refused(std::string_view word) {
    return !expand(word, kVariables, '\\');
}

}  // namespace

TEST_CASE("variables are replaced in words and double quotes") {
    CHECK(value_of("$A-${A}") == "one-one");
    CHECK(value_of("x${B_2}y") == "xtwo wordsy");
    CHECK(value_of("\"$A $B_2\"") == "one two words");
    CHECK(value_of("$NONE.${NONE}.") == "..");
    CHECK(value_of("$Q") == "a'b\"c");
}

TEST_CASE("quotes and escapes keep what they hold") {
    CHECK(value_of("'$A'\"b\"c") == "$Abc");
    CHECK(value_of("\\$A") == "$A");
    CHECK(value_of("\\\\$A") == "\\one");
    CHECK(value_of("\"\\$A\\x\\\"\"") == "$A\\x\"");
    CHECK(value_of("a\\ b") == "a b");
    CHECK(value_of("end\\") == "end");
    CHECK(value_of("c:\\dir", '`') == "c:\\dir");
    CHECK(value_of("`$A", '`') == "$A");
}

TEST_CASE("a dollar without a name is a dollar") {
    CHECK(value_of("$") == "$");
    CHECK(value_of("1$ 2$-") == "1$ 2$-");
}

TEST_CASE("defaults and alternatives follow whether the variable is set") {
    CHECK(value_of("${A:-d}") == "one");
    CHECK(value_of("${NONE:-d}") == "d");
    CHECK(value_of("${EMPTY:-d}") == "d");
    CHECK(value_of("${EMPTY-d}").empty());
    CHECK(value_of("${NONE-d}") == "d");
    CHECK(value_of("${A:+y}") == "y");
    CHECK(value_of("${EMPTY:+y}").empty());
    CHECK(value_of("${EMPTY+y}") == "y");
    CHECK(value_of("${NONE+y}").empty());
    CHECK(value_of("${NONE:-${A}/\"}\"}") == "one/}");
    CHECK(value_of("${A:?must be}") == "one");
}

TEST_CASE("broken words are refused with the reason") {
    CHECK(refused("'open"));
    CHECK(refused("\"open"));
    CHECK(refused("${A"));
    CHECK(refused("${}"));
    CHECK(refused("${A%x}"));
    CHECK(refused("${A:x}"));
    auto missing = expand("${NONE:?is needed}", kVariables, '\\');
    REQUIRE(!missing);
    CHECK(missing.error().message() == "NONE: is needed");
}

TEST_CASE("expansion has limits") {
    std::string deep;
    for (int i = 0; i < 100; ++i)
        deep += "${N:-";
    CHECK(refused(deep + std::string(100, '}')));
    const Variables large{{"X", std::string(700'000, 'x')}};
    CHECK(expand("$X", large, '\\'));
    CHECK(!expand("$X$X", large, '\\'));
}
