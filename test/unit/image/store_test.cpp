#include "archives.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

std::string layer(const std::string& content) {
    return tar({directory("etc/"), TarEntry("etc/file", content)});
}

bool never(const std::string&) {
    return false;
}

std::size_t layer_count(const TestStore& test) {
    fs::directory_iterator layers(test.directory.path() / "images/layers");
    return static_cast<std::size_t>(std::distance(begin(layers), end(layers)));
}

std::vector<std::string> references(TestStore& test) {
    std::vector<std::string> names;
    auto images = test.store->list();
    REQUIRE(images);
    for (const auto& info : *images)
        names.push_back(info.reference);
    return names;
}

}  // namespace

TEST_CASE("an unknown image is not found and named") {
    TestStore test;
    auto result = test.store->resolve("nothing:here");
    REQUIRE_FALSE(result);
    CHECK(result.error().code() == ErrorCode::not_found);
    CHECK_THAT(result.error().message(), Catch::Contains("nothing:here"));
    CHECK(test.store->remove("nothing", never).error().code() == ErrorCode::not_found);
    CHECK(test.store->resolve("Not Valid").error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("layers are shared and go with the last image that uses them") {
    TestStore test;
    std::string common = layer("common"), own = layer("own"), other = layer("other");
    REQUIRE(test.import(OciImage({common, own}).archive(), "a"));
    REQUIRE(test.import(OciImage({common, other}).archive(), "b"));
    CHECK(layer_count(test) == 3);
    REQUIRE(test.store->remove("a", never));
    CHECK(layer_count(test) == 2);
    CHECK(test.store->resolve("a").error().code() == ErrorCode::not_found);
    auto rootfs = test.store->resolve("b");
    REQUIRE(rootfs);
    for (const fs::path& path : rootfs->layers)
        CHECK(fs::exists(path / "etc/file"));
    REQUIRE(test.store->remove("b", never));
    CHECK(layer_count(test) == 0);
    CHECK(references(test) == std::vector<std::string>{"host"});
}

TEST_CASE("an image in use stays") {
    TestStore test;
    auto info = test.import(layer("x"));
    REQUIRE(info);
    std::string asked;
    auto before = snapshot(test.directory.path());
    auto result = test.store->remove("test", [&](const std::string& digest) {
        asked = digest;
        return true;
    });
    REQUIRE_FALSE(result);
    CHECK(result.error().code() == ErrorCode::conflict);
    CHECK(asked == info->digest);
    CHECK(snapshot(test.directory.path()) == before);
    CHECK(test.store->resolve("test"));
}

TEST_CASE("a tag that moves leaves what it named, by digest") {
    TestStore test;
    auto first = test.import(layer("first"), "app:1");
    auto second = test.import(layer("second"), "app:1");
    REQUIRE(first);
    REQUIRE(second);
    std::string former = "app@" + first->digest;
    CHECK(references(test) == std::vector<std::string>{"host", "app:1", former});
    CHECK(test.store->resolve("app:1")->digest == second->digest);
    REQUIRE(test.store->resolve(former));
    CHECK(fs::exists(test.store->resolve(former)->layers[0] / "etc/file"));
    CHECK(test.store->resolve("app@" + second->digest)->digest == second->digest);
    REQUIRE(test.store->remove(former, never));
    CHECK(layer_count(test) == 1);
    REQUIRE(test.import(layer("second"), "app:1"));
    CHECK(references(test) == std::vector<std::string>{"host", "app:1"});
    REQUIRE(test.import(layer("second"), "app:2"));
    CHECK(references(test) == std::vector<std::string>{"host", "app:1", "app:2"});
    CHECK(layer_count(test) == 1);
}

TEST_CASE("host and digests cannot be imported, host cannot be removed") {
    TestStore test;
    CHECK(test.import(layer("x"), "host").error().code() == ErrorCode::conflict);
    CHECK(test.import(layer("x"), "host:latest").error().code() == ErrorCode::conflict);
    CHECK(test.import(layer("x"), "a@sha256:" + std::string(64, 'a')).error().code() ==
          ErrorCode::invalid_argument);
    CHECK(test.store->remove("host", never).error().code() == ErrorCode::conflict);
}

TEST_CASE("a store that is opened again knows its images and has no remains") {
    TestStore test;
    OciImage image({layer("a"), layer("b")});
    auto info = test.import(image.archive(), "kept:1");
    REQUIRE(info);
    auto before = snapshot(test.directory.path());
    fs::path images = test.directory.path() / "images";
    // An import that died: half a layer in staging, and one that was moved but never named.
    fs::create_directories(images / "staging/dead/half/etc");
    std::ofstream(images / "staging/dead/archive") << "x";
    std::ofstream(images / "staging/file") << "x";
    fs::create_directories(images / "layers" / std::string(64, 'e') / "etc");
    test.store.reset();
    auto opened = image::Store::open(images);
    REQUIRE(opened);
    CHECK(snapshot(test.directory.path()) == before);
    auto rootfs = (*opened)->resolve("kept:1");
    REQUIRE(rootfs);
    CHECK(rootfs->digest == info->digest);
    CHECK(rootfs->config.entrypoint == std::vector<std::string>{"/bin/sh"});
    auto listed = (*opened)->list();
    REQUIRE(listed->size() == 2);
    CHECK((*listed)[0].built_in);
    CHECK((*listed)[1].size == 2);
    CHECK((*listed)[1].created_at == info->created_at);
}

TEST_CASE("opening does not touch an import that is under way") {
    TestStore test;
    auto bytes = source_of(layer("x"), 512);
    bool opened = false;
    image::ByteSource source = [&](std::span<char> into) -> Result<std::size_t> {
        opened = opened || image::Store::open(test.directory.path() / "images").has_value();
        return bytes(into);
    };
    CHECK(test.store->import_archive("test", source));
    CHECK(opened);
    CHECK(test.store->resolve("test"));
}

TEST_CASE("two stores on one directory see each other's images") {
    TestStore test;
    auto other = image::Store::open(test.directory.path() / "images");
    REQUIRE(other);
    REQUIRE((*other)->import_archive("late", source_of(layer("x"))));
    CHECK(test.store->resolve("late"));
    REQUIRE(test.store->remove("late", never));
    CHECK_FALSE((*other)->resolve("late"));
}

TEST_CASE("an index that is not ours is refused, not overwritten") {
    for (const char* text : {"{", "[]", "{}", R"({"version":2,"images":[],"layers":{}})",
                             R"({"version":1,"images":[],"layers":{"../x":{}}})"}) {
        TemporaryDirectory directory;
        fs::create_directories(directory.path());
        std::ofstream(directory.path() / "index.json") << text;
        auto result = image::Store::open(directory.path());
        REQUIRE_FALSE(result);
        CHECK_THAT(result.error().message(), Catch::Contains("index.json"));
    }
}

TEST_CASE("imports, removals and lookups run side by side") {
    TestStore test;
    std::string common = layer("common");
    const auto name_of = [](int worker) { return "image-" + std::to_string(worker); };
    // What checks inside is not for threads.
    std::map<std::pair<int, int>, std::pair<std::string, std::string>> images;
    for (int worker = 0; worker < 4; ++worker) {
        for (int round = 0; round < 4; ++round) {
            const OciImage image({common, layer(name_of(worker) + std::to_string(round))});
            images[{worker, round}] = {image.archive(), image.manifest_digest()};
        }
    }
    std::atomic<int> wrong{0};
    auto work = [&](int worker) {
        for (int round = 0; round < 4; ++round) {
            const std::string name = name_of(worker);
            const auto& [archive, digest] = images.at({worker, round});
            if (!test.store->import_archive(name, source_of(archive))) ++wrong;
            auto rootfs = test.store->resolve(name);
            if (!rootfs || rootfs->digest != digest) ++wrong;
            for (const fs::path& path : rootfs->layers) {
                if (!fs::exists(path / "etc/file")) ++wrong;
            }
            if (!test.store->remove(name, never)) ++wrong;
            if (!test.store->list()) ++wrong;
        }
    };
    std::vector<std::thread> workers;
    for (int i = 0; i < 4; ++i)
        workers.emplace_back(work, i);
    for (std::thread& worker : workers)
        worker.join();
    CHECK(wrong == 0);
    CHECK(layer_count(test) == 0);
    CHECK(fs::is_empty(test.directory.path() / "images/staging"));
    CHECK(references(test) == std::vector<std::string>{"host"});
}

TEST_CASE("the store is private to its owner") {
    TestStore test;
    auto mode = fs::status(test.directory.path() / "images").permissions();
    CHECK(mode == fs::perms::owner_all);
}
