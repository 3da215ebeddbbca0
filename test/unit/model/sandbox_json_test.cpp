#include "json/document.hpp"
#include "model/sandbox.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

namespace {

model::Sandbox example() {
    model::Sandbox sandbox;
    sandbox.id = "3be8045b-4685-4444-be82-503f1f34c8e0";
    sandbox.image_uri = "host";
    sandbox.created_at = *parse_rfc3339("2026-01-01T00:00:00.123456Z");
    sandbox.status = model::SandboxStatus(model::SandboxState::running, "CONTAINER_RUNNING",
                                          "Sandbox is running.", sandbox.created_at);
    sandbox.entrypoint = {"tail", "-f"};
    return sandbox;
}

}  // namespace

TEST_CASE("a sandbox is rendered without nulls and without what it has not") {
    REQUIRE(
        model::to_json(example()) ==
        R"({"id":"3be8045b-4685-4444-be82-503f1f34c8e0","image":{"uri":"host"},)"
        R"("status":{"state":"Running","reason":"CONTAINER_RUNNING","message":"Sandbox is running.",)"
        R"("lastTransitionAt":"2026-01-01T00:00:00.123456Z"},"entrypoint":["tail","-f"],)"
        R"("createdAt":"2026-01-01T00:00:00.123456Z"})");
}

TEST_CASE("empty metadata is echoed by create and left out by get") {
    auto sandbox = example();
    sandbox.metadata.emplace();
    REQUIRE(model::to_json(sandbox).find("metadata") == std::string::npos);
    REQUIRE(model::to_create_json(sandbox).find(R"("metadata":{})") != std::string::npos);
    sandbox.metadata.reset();
    REQUIRE(model::to_create_json(sandbox).find("metadata") == std::string::npos);
}

TEST_CASE("the answer to create has no image") {
    auto sandbox = example();
    sandbox.platform = model::Platform("linux", "amd64");
    sandbox.extensions = {{"opensandbox.extensions.a", "b"}};
    sandbox.expires_at = *parse_rfc3339("2030-01-01T00:00:00Z");
    std::string text = model::to_create_json(sandbox);
    REQUIRE(text.find("image") == std::string::npos);
    REQUIRE(text.find(R"("platform":{"os":"linux","arch":"amd64"})") != std::string::npos);
    REQUIRE(text.find(R"("extensions":{"opensandbox.extensions.a":"b"})") != std::string::npos);
    REQUIRE(text.find(R"("expiresAt":"2030-01-01T00:00:00Z")") != std::string::npos);
    REQUIRE(json::parse(text));
}

TEST_CASE("text of any bytes becomes valid JSON") {
    auto round_trip = [](std::string_view text) {
        auto parsed = json::parse(model::json_string(text));
        INFO(model::json_string(text));
        REQUIRE(parsed);
        return std::string(parsed->get_string());
    };
    REQUIRE(round_trip("a\"b\\c\n\r\t\x01\x7f") == "a\"b\\c\n\r\t\x01\x7f");
    REQUIRE(round_trip("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") ==
            "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    REQUIRE(round_trip("a\xff\xc3") == "a\xef\xbf\xbd\xef\xbf\xbd");
    REQUIRE(round_trip("\xed\xa0\x80").find("\xef\xbf\xbd") == 0);
    REQUIRE(round_trip("\xc0\xaf").find("\xef\xbf\xbd") == 0);
}

TEST_CASE("states are read in any case") {
    REQUIRE(model::parse_state("running") == model::SandboxState::running);
    REQUIRE(model::parse_state("TERMINATED") == model::SandboxState::terminated);
    REQUIRE_FALSE(model::parse_state("Allocated"));
    REQUIRE_FALSE(model::parse_state(""));
}
