#include "model/field_rule.hpp"
#include "model/metadata.hpp"
#include "model/resource_quantity.hpp"
#include "model/timestamp.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

TEST_CASE("cpu quantities") {
    REQUIRE(model::parse_cpu("1") == 1.0);
    REQUIRE(model::parse_cpu("0.5") == 0.5);
    REQUIRE(model::parse_cpu(" 500m ") == 0.5);
    REQUIRE(model::parse_cpu("1e-1") == 0.1);
    for (const char* bad :
         {"", "m", "0", "-1", "nan", "inf", "1 core", "zz", "1mm", "0m", "1e999"}) {
        INFO(bad);
        REQUIRE_FALSE(model::parse_cpu(bad));
    }
}

TEST_CASE("memory quantities") {
    REQUIRE(model::parse_memory("1024") == 1024);
    REQUIRE(model::parse_memory("1k") == 1000);
    REQUIRE(model::parse_memory("1Ki") == 1024);
    REQUIRE(model::parse_memory(" 512MI ") == 512ULL << 20);
    REQUIRE(model::parse_memory("2gb") == 2'000'000'000ULL);
    REQUIRE(model::parse_memory("1ti") == 1ULL << 40);
    for (const char* bad :
         {"", "0", "-1", "1.5Gi", "1 Gi", "Gi", "1x", "99999999999999999999", "10000000t"}) {
        INFO(bad);
        REQUIRE_FALSE(model::parse_memory(bad));
    }
}

TEST_CASE("gpu quantities") {
    REQUIRE(model::parse_gpu("2") == 2);
    REQUIRE(model::parse_gpu("All") == -1);
    for (const char* bad : {"", "0", "-1", "1.5", "some"})
        REQUIRE_FALSE(model::parse_gpu(bad));
}

TEST_CASE("timestamps are read leniently") {
    auto read = [](std::string_view text) {
        std::string why;
        auto at = model::parse_timestamp(text, why);
        INFO(std::string(text) << ": " << why);
        REQUIRE(at);
        return to_rfc3339(*at);
    };
    REQUIRE(read("2026-01-01T10:00:00Z") == "2026-01-01T10:00:00Z");
    REQUIRE(read("2026-01-01 10:00:00") == "2026-01-01T10:00:00Z");
    REQUIRE(read("2026-01-01T10:00") == "2026-01-01T10:00:00Z");
    REQUIRE(read("2026-01-01T10:00+08:00") == "2026-01-01T02:00:00Z");
    REQUIRE(read("2026-01-01T10:00:00+0800") == "2026-01-01T02:00:00Z");
    REQUIRE(read("2026-01-01T10:00:00.123456789Z") == "2026-01-01T10:00:00.123456Z");
    REQUIRE(read("2026-01-01") == "2026-01-01T00:00:00Z");
    REQUIRE(read("1700000000") == "2023-11-14T22:13:20Z");
    REQUIRE(read("1700000000000") == "2023-11-14T22:13:20Z");
    REQUIRE(read("1700000000.5") == "2023-11-14T22:13:20.500000Z");
    REQUIRE(read("-1") == "1969-12-31T23:59:59Z");
}

TEST_CASE("timestamps out of reach are refused with a reason") {
    for (const char* bad : {"", "foo", "2026-13-01T00:00:00Z", "2026-02-30", "1e20", "nan", "inf",
                            "-1e300", "2026-01-01T25:00:00Z", "2026-01-01T10:00:00X"}) {
        std::string why;
        INFO(bad);
        REQUIRE_FALSE(model::parse_timestamp(bad, why));
        REQUIRE_FALSE(why.empty());
    }
}

TEST_CASE("lenient integers and booleans") {
    using model::lax_boolean;
    REQUIRE(model::lax_integer(std::string_view(" 70 ")) == 70);
    REQUIRE(model::lax_integer(std::string_view("7_0")) == 70);
    REQUIRE(model::lax_integer(std::string_view("70.00")) == 70);
    REQUIRE(model::lax_integer(std::string_view("-5")) == -5);
    for (std::string_view bad : {"", " ", "x", "1.5", ".0", "_1", "1_", "1__0", "+-1", "0x10"}) {
        INFO(std::string(bad));
        REQUIRE_FALSE(model::lax_integer(bad));
    }
    for (std::string_view yes : {"true", "1", "YES", "on", "t", "Y"})
        REQUIRE(lax_boolean(yes) == true);
    for (std::string_view no : {"false", "0", "no", "OFF", "f", "n"})
        REQUIRE(lax_boolean(no) == false);
    for (std::string_view bad : {"", "2", "perhaps"})
        REQUIRE_FALSE(lax_boolean(bad));
}

TEST_CASE("metadata keys and values follow the label rules") {
    for (const char* good : {"a", "A-b_c.d9", "example.com/name", "a.b-c.d/X"}) {
        INFO(good);
        REQUIRE(model::is_label_key(good));
    }
    std::string long_name(64, 'a');
    std::string long_prefix = std::string(254, 'a') + "/x";
    for (std::string bad : {std::string(), std::string("-a"), std::string("a-"), std::string("a b"),
                            std::string("/a"), std::string("a/"), std::string("A.com/x"),
                            std::string("a..b/x"), std::string("a/b/c"), long_name, long_prefix}) {
        INFO(bad);
        REQUIRE_FALSE(model::is_label_key(bad));
    }
    REQUIRE(model::is_label_value(""));
    REQUIRE(model::is_label_value(std::string(63, 'x')));
    REQUIRE_FALSE(model::is_label_value(std::string(64, 'x')));
    REQUIRE_FALSE(model::is_label_value("a b"));
    REQUIRE_FALSE(model::is_label_value(".a"));
}

TEST_CASE("metadata at create refuses the reserved prefix and bad labels under one code") {
    auto code = [](const model::StringMap& map) { return model::check_labels(map).error().wire(); };
    REQUIRE(model::check_labels({{"a", "b"}, {"team.x/y", ""}}));
    REQUIRE(code({{"opensandbox.io/x", "1"}}) == "SANDBOX::INVALID_METADATA_LABEL");
    REQUIRE(code({{"a b", "1"}}) == "SANDBOX::INVALID_METADATA_LABEL");
    REQUIRE(code({{"a", "white space"}}) == "SANDBOX::INVALID_METADATA_LABEL");
}

TEST_CASE("a metadata patch merges like RFC 7396") {
    model::StringMap before{{"env", "prod"}, {"team", "x"}, {"old key!", "kept"}};
    auto parsed =
        model::parse_metadata_patch(R"({"env":"stage","team":null,"new":"1","gone":null})");
    auto merged = model::apply(std::get<model::MetadataPatch>(parsed), before);
    REQUIRE(merged);
    REQUIRE(*merged == model::StringMap{{"env", "stage"}, {"old key!", "kept"}, {"new", "1"}});
    REQUIRE(*model::apply({}, before) == before);
}

TEST_CASE("a metadata patch refuses what it must not set") {
    auto apply = [](const char* body) {
        auto parsed = model::parse_metadata_patch(body);
        return model::apply(std::get<model::MetadataPatch>(parsed), {});
    };
    REQUIRE(apply(R"({"opensandbox.io/a":"1"})").error().wire() == "INVALID_METADATA_LABEL");
    REQUIRE(apply(R"({"a b":"1"})").error().wire() == "SANDBOX::INVALID_METADATA_LABEL");
    for (const char* bad : {R"({"a":1})", R"({"a":{}})", "[]", "null", "x", ""}) {
        INFO(bad);
        REQUIRE(std::holds_alternative<model::FieldErrors>(model::parse_metadata_patch(bad)));
    }
}

TEST_CASE("a filter matches when every pair is there exactly") {
    model::StringMap metadata{{"a", "1"}, {"b", ""}};
    REQUIRE(model::matches({}, metadata));
    REQUIRE(model::matches({{"b", ""}, {"a", "1"}}, metadata));
    REQUIRE_FALSE(model::matches({{"a", "2"}}, metadata));
    REQUIRE_FALSE(model::matches({{"c", ""}}, metadata));
}
