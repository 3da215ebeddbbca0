#include "unit/server/api/app_fixture.hpp"
#include "version.hpp"

#include <catch2/catch.hpp>

#include <regex>

using namespace opensandbox;
using Catch::Contains;
using test_support::AppFixture;

TEST_CASE("the API document and its pages are bare and open") {
    AppFixture f;
    for (const char* target : {"/openapi.json", "/docs", "/redoc"}) {
        INFO(target);
        REQUIRE(f.send("GET", target, "", {{"X-No-Key", "1"}}).status == 200);
        REQUIRE(f.get("/v1" + std::string(target)).status == 404);
        REQUIRE(f.send("POST", target).status == 405);
    }
}

TEST_CASE("the API document is JSON, of this program's version, and has the routes of both specs") {
    AppFixture f;
    auto answer = f.get("/openapi.json");
    REQUIRE(answer.field("Content-Type") == "application/json");
    auto parsed = json::parse(answer.body);
    REQUIRE(parsed.has_value());
    const auto& document = parsed->get_object();
    REQUIRE(document.at("info").at("version").as_string() == kVersion);
    const auto& paths = document.at("paths").as_object();
    REQUIRE(paths.contains("/sandboxes"));
    REQUIRE(paths.contains("/sandboxes/{sandboxId}/diagnostics/logs"));
    REQUIRE(document.at("components").at("schemas").as_object().contains("Diagnostics"));
}

TEST_CASE("the page loads nothing from elsewhere") {
    AppFixture f;
    auto answer = f.get("/docs");
    REQUIRE(answer.field("Content-Type") == "text/html; charset=utf-8");
    REQUIRE_THAT(answer.field("Content-Security-Policy"), Contains("frame-ancestors 'none'"));
    REQUIRE(answer.field("X-Frame-Options") == "DENY");
    REQUIRE(answer.field("Cross-Origin-Opener-Policy") == "same-origin");
    REQUIRE(answer.field("Cross-Origin-Resource-Policy") == "same-origin");
    REQUIRE_THAT(answer.field("Content-Security-Policy"), Contains("default-src 'none'"));
    REQUIRE_FALSE(std::regex_search(answer.body, std::regex("https?://|src=|@import|<link")));
    REQUIRE(f.get("/redoc").body == answer.body);
}
