#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;
using test_support::AppFixture;

namespace {

json::object object_of(const std::string& body) {
    auto parsed = json::parse(body);
    REQUIRE(parsed.has_value());
    return parsed->get_object();
}

std::string lines(int count) {
    std::string text;
    for (int i = 1; i <= count; ++i)
        text += "line " + std::to_string(i) + "\n";
    return text;
}

}  // namespace

TEST_CASE("diagnostics: logs with a scope are JSON, cut to a hundred lines") {
    AppFixture f;
    std::string base = "/v1/sandboxes/" + f.make() + "/diagnostics/";
    f.runtime.log_text = lines(101);
    auto answer = f.get(base + "logs?scope=%20Container&tail=0x");
    REQUIRE(answer.status == 422);
    answer = f.get(base + "logs?scope=%20Container&tail=3&since=1h");
    REQUIRE(answer.status == 200);
    REQUIRE_FALSE(answer.fields.has("Deprecation"));
    auto body = object_of(answer.body);
    REQUIRE(body.at("kind").as_string() == "logs");
    REQUIRE(body.at("scope").as_string() == "container");
    REQUIRE(body.at("delivery").as_string() == "inline");
    REQUIRE(body.at("contentType").as_string() == "text/plain; charset=utf-8");
    std::string content(body.at("content").as_string());
    REQUIRE_THAT(content, StartsWith("line 2\n") && EndsWith("line 101\n"));
    REQUIRE(body.at("contentLength").as_int64() == static_cast<std::int64_t>(content.size()));
    REQUIRE(body.at("truncated").as_bool());
    REQUIRE_FALSE(body.contains("warnings"));
    REQUIRE(f.runtime.log_query.tail == 101);
    REQUIRE_FALSE(f.runtime.log_query.since);

    f.runtime.log_text = "a \xff b\n";
    body = object_of(f.get(base + "logs?scope=all").body);
    REQUIRE_FALSE(body.at("truncated").as_bool());
    REQUIRE(body.at("contentLength").as_int64() == 8);
    REQUIRE(body.at("warnings").as_array().size() == 1);
}

TEST_CASE("diagnostics: logs without a scope are text, and deprecated") {
    AppFixture f;
    std::string base = "/sandboxes/" + f.make() + "/diagnostics/";
    auto answer = f.get(base + "logs?since=1h");
    REQUIRE(answer.status == 200);
    REQUIRE(answer.field("Content-Type") == "text/plain; charset=utf-8");
    REQUIRE(answer.field("Deprecation") == "true");
    REQUIRE(answer.body == "(no logs)");
    REQUIRE(f.runtime.log_query.since);
    f.runtime.log_text = lines(3);
    REQUIRE(f.get(base + "logs?tail=2").body == "line 2\nline 3\n");
}

TEST_CASE("diagnostics: scopes that do not exist are refused by name") {
    AppFixture f;
    std::string base = "/v1/sandboxes/" + f.make() + "/diagnostics/";
    for (const char* target : {"logs?scope=lifecycle", "logs?scope=runtime",
                               "logs?scope=", "events?scope=container", "events?scope=lifecycle"}) {
        INFO(target);
        auto answer = f.get(base + target);
        REQUIRE(answer.status == 400);
        REQUIRE(answer.code() == "DIAGNOSTICS_SCOPE_UNSUPPORTED");
    }
}

TEST_CASE("diagnostics: events tell what happened to the sandbox") {
    AppFixture f;
    std::string id = f.make();
    std::string base = "/v1/sandboxes/" + id + "/diagnostics/";
    REQUIRE(f.send("POST", "/v1/sandboxes/" + id + "/renew-expiration",
                   R"({"expiresAt":"2100-01-01T00:00:00Z"})")
                .status == 200);
    auto answer = f.get(base + "events");
    REQUIRE(answer.status == 200);
    REQUIRE(answer.field("Deprecation") == "true");
    REQUIRE_THAT(answer.body, StartsWith("Container:  ") && Contains("CONTAINER_RUNNING") &&
                                  Contains("Sandbox expires at 2100-01-01T00:00:00Z."));
    REQUIRE_THAT(f.get(base + "events?limit=1").body, StartsWith("Container:") && !Contains("\n"));
    auto body = object_of(f.get(base + "events?scope=runtime").body);
    REQUIRE(body.at("kind").as_string() == "events");
    REQUIRE(std::string(body.at("content").as_string()) == answer.body);
    REQUIRE(object_of(f.get(base + "events?scope=all").body).at("warnings").as_array().size() == 1);
}

TEST_CASE("diagnostics: inspect and summary show no secrets and are not deprecated") {
    AppFixture f;
    std::string id = f.make();
    std::string base = "/v1/sandboxes/" + id + "/diagnostics/";
    f.runtime.inspection.environment = {{"MY_TOKEN", "hush"}, {"LANG", "C"}};
    f.runtime.log_text = lines(2);
    auto inspect = f.get(base + "inspect");
    REQUIRE(inspect.status == 200);
    REQUIRE_FALSE(inspect.fields.has("Deprecation"));
    REQUIRE_THAT(inspect.body, Contains("MY_TOKEN=***") && Contains("LANG=C") && !Contains("hush"));
    auto summary = f.get(base + "summary?tail=1");
    REQUIRE_FALSE(summary.fields.has("Deprecation"));
    REQUIRE_THAT(summary.body, Contains("Sandbox ID: " + id) && Contains(inspect.body) &&
                                   Contains("LOGS (last 1 lines)") && Contains("line 2") &&
                                   !Contains("line 1\n"));
}

TEST_CASE(
    "diagnostics: a sandbox nobody knows, one that only the store knows, and a failing backend") {
    AppFixture f;
    std::string id = f.make();
    for (const char* page : {"logs", "events?scope=all", "inspect", "summary"}) {
        INFO(page);
        auto answer = f.get("/v1/sandboxes/nobody/diagnostics/" + std::string(page));
        REQUIRE(answer.status == 404);
        REQUIRE(answer.code() == "NATIVE::SANDBOX_NOT_FOUND");
    }
    std::string base = "/v1/sandboxes/" + id + "/diagnostics/";
    f.runtime.diagnostics_error = Error(ErrorCode::not_found, "gone");
    REQUIRE(f.get(base + "logs").body == "(no logs)");
    REQUIRE_THAT(f.get(base + "inspect").body, Contains("Status:         running"));
    REQUIRE(f.get(base + "summary").status == 200);
    f.runtime.diagnostics_error = Error(ErrorCode::io, "the daemon is down");
    for (const char* page : {"logs", "events", "inspect"}) {
        INFO(page);
        auto answer = f.get(base + page);
        REQUIRE(answer.status == 500);
        REQUIRE(answer.code() == "NATIVE::SANDBOX_QUERY_FAILED");
        REQUIRE_THAT(answer.body, Contains("the daemon is down"));
    }
    auto summary = f.get(base + "summary");
    REQUIRE(summary.status == 200);
    REQUIRE_THAT(summary.body, Contains("(unreadable: ") && Contains("the daemon is down"));
}
