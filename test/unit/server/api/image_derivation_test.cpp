#include "image/directory_archive.hpp"
#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace opensandbox;
using test_support::AppFixture;
namespace fs = std::filesystem;

namespace {

runtime::Capabilities able() {
    runtime::Capabilities able;
    able.snapshots = true;
    able.snapshot_content = true;
    return able;
}

/// An image in the store; returns its digest.
std::string add_image(AppFixture& f, const std::string& reference) {
    const fs::path root = f.scratch.path / "root";
    fs::create_directories(root / "etc");
    std::ofstream(root / "etc/file") << "below";
    std::string bytes;
    REQUIRE(image::write_archive(root, [&](std::span<const char> piece) -> Status {
        bytes.append(piece.begin(), piece.end());
        return {};
    }));
    std::size_t at = 0;
    auto imported = f.images->import_archive(reference, [&](std::span<char> into) {
        const std::size_t count = bytes.copy(into.data(), into.size(), at);
        at += count;
        return Result<std::size_t>(count);
    });
    REQUIRE(imported.has_value());
    return imported->digest;
}

/// A Ready snapshot of one layer on the image with that digest.
std::string add_snapshot(AppFixture& f, const std::string& digest) {
    f.runtime.content.image_digest = digest;
    f.runtime.content.layers = {[](const fs::path& to) -> Status {
        fs::create_directory(to);
        std::ofstream(to / "own") << "mine";
        return {};
    }};
    auto accepted = f.send("POST", "/v1/sandboxes/" + f.make() + "/snapshots");
    REQUIRE(accepted.status == 202);
    std::string id(json::parse(accepted.body)->at("id").as_string());
    f.until([&] { return f.get("/snapshots/" + id).body.find("\"Ready\"") != std::string::npos; });
    return id;
}

}  // namespace

TEST_CASE("images over HTTP: one is made of a snapshot") {
    AppFixture f("secret", nullptr, able());
    std::string id = add_snapshot(f, add_image(f, "base:1"));
    auto made = f.send("POST", "/v1/snapshots/" + id + "/image",
                       R"({"reference":"made","config":{"env":{"A":"b"},"workingDir":"/srv",)"
                       R"("user":null,"cmd":["x"]}})");
    INFO(made.body);
    REQUIRE(made.status == 201);
    auto shown = json::parse(made.body);
    CHECK(shown->at("reference").as_string() == "made:latest");
    CHECK(f.get("/v1/images").body.find(made.body) != std::string::npos);
    auto rootfs = f.images->resolve("made");
    REQUIRE(rootfs.has_value());
    REQUIRE(rootfs->layers.size() == 2);
    CHECK(fs::exists(rootfs->layers[0] / "own"));
    CHECK(rootfs->config.working_directory == "/srv");
    CHECK(rootfs->config.cmd == std::vector<std::string>{"x"});
    // It does not need the snapshot any more.
    CHECK(f.send("DELETE", "/v1/snapshots/" + id).status == 204);
    CHECK(fs::exists(rootfs->layers[0] / "own"));
}

TEST_CASE("images over HTTP: one gets another name and config") {
    AppFixture f("secret", nullptr, able());
    std::string digest = add_image(f, "base:1");
    auto tagged = f.send("POST", "/images/tag", R"({"source":"base:1","reference":"base:2"})");
    REQUIRE(tagged.status == 201);
    CHECK(json::parse(tagged.body)->at("digest").as_string() == digest);
    auto changed =
        f.send("POST", "/v1/images/tag",
               R"({"source":"base:1","reference":"base:3","config":{"exposedPorts":["80/tcp"]}})");
    REQUIRE(changed.status == 201);
    CHECK(json::parse(changed.body)->at("digest").as_string() != digest);
    CHECK(f.images->resolve("base:3")->config.exposed_ports == std::vector<std::string>{"80/tcp"});
}

TEST_CASE("images over HTTP: what cannot be made is refused by name") {
    AppFixture f("secret", nullptr, able());
    std::string id = add_snapshot(f, add_image(f, "base:1"));
    std::string route = "/v1/snapshots/" + id + "/image";
    CHECK(f.send("POST", route, "{}").status == 422);
    CHECK(f.send("POST", route, R"({"reference":"a","config":{"more":1}})").status == 422);
    CHECK(f.send("POST", "/v1/images/tag", R"({"reference":"a"})").status == 422);
    auto invalid = f.send("POST", route, R"({"reference":"Not Valid"})");
    CHECK(invalid.status == 400);
    CHECK(invalid.code() == "IMAGE::INVALID");
    auto unknown = f.send("POST", "/v1/snapshots/none/image", R"({"reference":"a"})");
    CHECK(unknown.status == 404);
    CHECK(unknown.code() == "SNAPSHOT::NOT_FOUND");
    auto absent = f.send("POST", "/v1/images/tag", R"({"source":"none","reference":"a"})");
    CHECK(absent.status == 404);
    CHECK(absent.code() == "IMAGE::NOT_FOUND");
    auto host = f.send("POST", "/v1/images/tag", R"({"source":"host","reference":"a"})");
    CHECK(host.status == 409);
    f.runtime.snapshot_error = Error(ErrorCode::conflict, "stands on host");
    auto stands = f.send("POST", route, R"({"reference":"a"})");
    CHECK(stands.status == 409);
    CHECK(stands.code() == "IMAGE::CONFLICT");
    CHECK(f.get("/v1/images").body.find("\"a:latest\"") == std::string::npos);
}

TEST_CASE("images over HTTP: a runtime that cannot take snapshots apart says so") {
    AppFixture f;
    auto refused = f.send("POST", "/v1/snapshots/any/image", R"({"reference":"a"})");
    CHECK(refused.status == 501);
    CHECK(refused.code() == "SNAPSHOT::NOT_IMPLEMENTED");
}
