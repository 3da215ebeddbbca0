#include "sdk/wire.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::sdk;

TEST_CASE("a transfer's request has the login only when there is one") {
    CHECK(wire::encode_transfer("app:1", "", {}) == R"({"reference":"app:1"})");
    CHECK(wire::encode_transfer("app:1", "r/app:2", RegistryAuth("me", "s\"")) ==
          R"({"reference":"app:1","destination":"r/app:2",)"
          R"("auth":{"username":"me","password":"s\""}})");
}

TEST_CASE("each line of a transfer is progress or its end") {
    auto progress = wire::decode_transfer_line(
        R"({"layer":"sha256:a","status":"downloading","done":5,"total":10})");
    REQUIRE(progress.has_value());
    REQUIRE(progress->progress);
    CHECK(progress->progress->status == "downloading");
    CHECK(progress->progress->done == 5);
    CHECK(progress->progress->total == 10);

    auto image =
        wire::decode_transfer_line(R"({"image":{"reference":"a:1","digest":"sha256:x","size":5,)"
                                   R"("createdAt":"2026-01-01T00:00:00Z","builtIn":false}})");
    REQUIRE(image.has_value());
    REQUIRE(image->image);
    CHECK(image->image->reference == "a:1");

    auto pushed =
        wire::decode_transfer_line(R"({"pushed":{"reference":"r/a:1","digest":"d","size":7}})");
    REQUIRE(pushed.has_value());
    REQUIRE(pushed->pushed);
    CHECK(pushed->pushed->size == 7);

    auto error =
        wire::decode_transfer_line(R"({"error":{"code":"IMAGE::ACCESS_DENIED","message":"no"}})");
    REQUIRE(error.has_value());
    REQUIRE(error->error);
    CHECK(error->error->code() == ErrorCode::permission_denied);
    CHECK(error->error->wire_code() == "IMAGE::ACCESS_DENIED");

    auto half = wire::decode_transfer_line(R"({"error":{"code":"x"}})");
    REQUIRE(half.has_value());
    CHECK(half->error->code() == ErrorCode::protocol);

    for (const char* line :
         {"", "[]", "{}", R"({"layer":1,"status":"x","done":0,"total":0})",
          R"({"layer":"a","status":"x","done":-1,"total":0})", R"({"pushed":{}})"}) {
        CAPTURE(line);
        auto read = wire::decode_transfer_line(line);
        REQUIRE(read.has_error());
        CHECK(read.error().code() == ErrorCode::protocol);
    }
}

TEST_CASE("details of an image and what a pruning took are read") {
    auto details = wire::decode_image_details(
        R"({"reference":"a:1","digest":"d","size":5,"createdAt":"2026-01-01T00:00:00Z",)"
        R"("builtIn":false,"os":"linux","architecture":"amd64","source":"r/a","config":{)"
        R"("env":{"A":"b"},"user":"me","workingDirectory":"/w","entrypoint":["e"],"cmd":["c"],)"
        R"("labels":{"l":"m"},"exposedPorts":["80/tcp"]},"layers":[{"diffId":"x","size":3}]})");
    REQUIRE(details.has_value());
    CHECK(details->info.reference == "a:1");
    CHECK(details->source == "r/a");
    CHECK(details->env.at("A") == "b");
    CHECK(details->layers.at(0).size == 3);
    CHECK(details->exposed_ports.at(0) == "80/tcp");
    CHECK(wire::decode_image_details(R"({"reference":"a:1"})").has_error());
    auto pruned = wire::decode_pruned(R"({"removed":["a:1"],"freed":9})");
    REQUIRE(pruned.has_value());
    CHECK(pruned->removed.at(0) == "a:1");
    CHECK(pruned->freed == 9);
}
