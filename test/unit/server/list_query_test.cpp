#include "server/list_query.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

namespace {

lifecycle::ListQuery query_of(std::string_view raw) {
    auto parsed = parse_list_query(raw);
    INFO(std::string(raw));
    REQUIRE(std::holds_alternative<lifecycle::ListQuery>(parsed));
    return std::get<lifecycle::ListQuery>(parsed);
}

}  // namespace

TEST_CASE("list query: states repeat, in any case; an empty one matches nothing") {
    REQUIRE_FALSE(query_of("").states);
    auto two = query_of("state=running&state=PAUSED");
    REQUIRE(*two.states == std::vector{model::SandboxState::running, model::SandboxState::paused});
    REQUIRE(query_of("state=").states->empty());
    REQUIRE(query_of("state=Allocated").states->empty());
}

TEST_CASE("list query: metadata is decoded twice, encoded once or twice") {
    model::StringMap expected{{"tag", "a b"}, {"k", "v=w"}};
    REQUIRE(query_of("metadata=tag%3Da%2520b%26k%3Dv%253Dw").metadata == expected);
    REQUIRE(query_of("metadata=tag%3Da%2Bb%26k%3Dv%3Dw").metadata == expected);
    REQUIRE(query_of("metadata=tag=").metadata == model::StringMap{{"tag", ""}});
    REQUIRE(query_of("metadata=").metadata.empty());
}

TEST_CASE("list query: metadata without '=' is a 400 of its own") {
    auto parsed = parse_list_query("metadata=zz");
    const auto& problem = std::get<ListQueryError>(parsed);
    REQUIRE(std::get<Error>(problem).wire() == "INVALID_METADATA_FORMAT");
    REQUIRE_FALSE(parse_metadata_filter("a=1&b"));
    REQUIRE(parse_metadata_filter("a=1&&b=%zz"));
}

TEST_CASE("list query: pages out of range are 422 in the contract's shape") {
    auto parsed = parse_list_query("pageSize=500");
    const auto& errors = std::get<model::FieldErrors>(std::get<ListQueryError>(parsed));
    REQUIRE(
        model::to_json(errors) ==
        R"({"detail":[{"type":"less_than_equal","loc":["query","pageSize"],"msg":"Input should be )"
        R"(less than or equal to 200","input":"500","ctx":{"le":200}}]})");
    for (const char* bad : {"page=0", "page=-1", "page=x", "pageSize=0", "page=1.5", "pageSize="}) {
        INFO(bad);
        REQUIRE(std::holds_alternative<ListQueryError>(parse_list_query(bad)));
    }
    auto good = query_of("page=3&pageSize=200");
    REQUIRE(good.page == 3);
    REQUIRE(good.page_size == 200);
}
