#include "mcp/document_schema.hpp"

#include "opensandbox/sandbox.hpp"
#include "sdk/document/describe.hpp"
#include "sdk/fields/page.hpp"
#include "sdk/fields/sandbox.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

TEST_CASE("the schema of a document is made of its list of members, and the document fits it") {
    const json::object schema = mcp::document_schema<sdk::SandboxPage>(
        sdk::fields::page_members(sdk::fields::kSandboxMembers));
    const json::value& item = schema.at("properties").at("items").at("items");
    const json::object& members = item.at("properties").as_object();
    CHECK(members.begin()->key() == "id");
    CHECK_FALSE(members.contains("interceptionMode"));
    CHECK_FALSE(members.contains("allocation"));
    CHECK(members.at("expires_at").at("description") == "When the server ends it; null: never");
    CHECK(json::serialize(item.at("required")) ==
          R"(["id","status","entrypoint","created_at","metadata"])");

    sdk::SandboxPage page;
    page.items.emplace_back();
    CHECK(mcp::schema::problem(sdk::describe(page), schema) == std::nullopt);
    page.items.front().image = "host";
    page.items.front().platform.emplace();
    json::object document = sdk::describe(page);
    CHECK(mcp::schema::problem(document, schema) == std::nullopt);
    document["items"].as_array()[0].as_object()["created_at"] = 7;
    CHECK(mcp::schema::problem(document, schema).has_value());
}
