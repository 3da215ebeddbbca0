#include "json/document.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

TEST_CASE("one document is read, and nothing may follow it") {
    CHECK(json::parse(R"( {"a":[1,2]} )").has_value());
    CHECK(json::parse("{} x").error().message().find("extra data") != std::string::npos);
    CHECK(json::parse("").has_error());
    CHECK(json::parse(R"({"a":[-1e308]})").has_value());
    for (std::string_view large : {"999E999", R"({"a":[{"b":-1e999}]})"}) {
        INFO(large);
        REQUIRE(json::parse(large).has_error());
        CHECK(json::parse(large).error().message().find("too large") != std::string::npos);
    }
    CHECK(json::parse("{\"a\":").error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("nesting has a limit") {
    CHECK(json::parse(std::string(60, '[') + std::string(60, ']')).has_value());
    CHECK(json::parse(std::string(70, '[') + std::string(70, ']')).has_error());
}

TEST_CASE("members are read by type and errors name them") {
    json::object from =
        json::parse(
            R"({"s":"x","i":3,"f":1.5,"b":true,"n":null,"l":["a"],"m":{"k":"v"},"w":{"k":1}})")
            ->get_object();
    CHECK(*json::get_string(from, "s").value() == "x");
    CHECK(*json::get_integer(from, "i").value() == 3);
    CHECK(*json::get_number(from, "f").value() == 1.5);
    CHECK(*json::get_bool(from, "b").value());
    CHECK_FALSE(json::get_string(from, "n").value());
    CHECK_FALSE(json::get_string(from, "absent").value());
    CHECK(json::get_strings(from, "l").value()->at(0) == "a");
    CHECK(json::get_string_map(from, "m").value()->at(0).second == "v");
    CHECK(json::get_string(from, "i").error().message() == "i: must be a string");
    CHECK(json::get_integer(from, "f").error().message() == "f: must be an integer");
    CHECK(json::get_bool(from, "s").error().message() == "s: must be true or false");
    CHECK(json::get_string_map(from, "w").error().message() == "w.k: must be a string");
}
