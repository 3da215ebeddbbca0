#include "sdk/document/describe.hpp"

#include "sdk/wire.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

TEST_CASE("a sandbox is described with the contract's members, absent ones null") {
    auto info = sdk::wire::decode_sandbox(
        R"({"id":"sb-1","image":{"uri":"host"},"status":{"state":"Running"},)"
        R"("entrypoint":["tail"],"createdAt":"2026-01-01T00:00:00.123456Z"})");
    REQUIRE(info.has_value());
    CHECK(describe(*info) ==
          *json::parse(
              R"({"id":"sb-1","status":{"state":"Running","reason":null,"message":null,)"
              R"("last_transition_at":null},"entrypoint":["tail"],"expires_at":null,)"
              R"("created_at":"2026-01-01T00:00:00.123456Z","image":{"image":"host","auth":null},)"
              R"("snapshot_id":null,"platform":null,"allocation":null,"metadata":{},)"
              R"("extensions":null})"));
}

TEST_CASE("files and commands are described with the contract's members") {
    sdk::FileInfo file;
    file.path = "/a";
    file.mode = 0644;
    CHECK(describe(file).at("mode") == 644);
    CHECK(describe(file).at("entry_type") == "file");
    sdk::CommandStatus status;
    CHECK(describe(status).at("exit_code").is_null());
}

TEST_CASE("a sandbox as rows has the parts of its status and image apart, and the image early") {
    auto info = sdk::wire::decode_sandbox(
        R"({"id":"sb-1","image":{"uri":"host"},"status":{"state":"Running","reason":"r"},)"
        R"("platform":{"os":"linux","arch":"amd64"},"entrypoint":["tail"],)"
        R"("createdAt":"2026-01-01T00:00:00Z"})");
    REQUIRE(info.has_value());
    CHECK(
        json::serialize(sdk::rows_of(*info)) ==
        R"({"id":"sb-1","status":"Running","status_reason":"r","status_message":null,"image":"host",)"
        R"("entrypoint":["tail"],"created_at":"2026-01-01T00:00:00Z","expires_at":null,)"
        R"("snapshot_id":null,"platform":{"os":"linux","arch":"amd64"},"metadata":{},"extensions":null})");
    info->image.reset();
    CHECK(sdk::rows_of(*info).at("image").is_null());
}
