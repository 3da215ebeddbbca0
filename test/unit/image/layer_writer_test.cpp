#include "image/layer_writer.hpp"

#include "archives.hpp"
#include "image/composition.hpp"
#include "image/export.hpp"
#include "image/staging.hpp"

#include <sys/stat.h>
#include <sys/xattr.h>

#include <fstream>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

std::string stream_of(const fs::path& layer) {
    std::string bytes;
    auto written = image::write_layer(layer, [&](std::span<const char> piece) {
        bytes.append(piece.data(), piece.size());
        return Status();
    });
    REQUIRE(written);
    return bytes;
}

/// Two layers, the upper of which hides what the lower one has.
OciImage hiding_image() {
    return OciImage({
        tar({directory("etc"), TarEntry("etc/passwd", "root"), TarEntry("etc/old", "old"),
             directory("data"), TarEntry("data/a", "a")}),
        tar({directory("etc", 0750).owner(3, 4).time(1'200'000'000), TarEntry("etc/.wh.old"),
             directory("data"), TarEntry("data/.wh..wh..opq"),
             TarEntry("data/program", "setuid")
                 .mode(04755)
                 .owner(0, 7)
                 .pax("SCHILY.xattr.user.note", "hello"),
             hard_link("data/same", "data/program"), soft_link("data/link", "/etc/passwd"),
             TarEntry("data/" + std::string(200, 'n'), std::string(100'000, 'z'))}),
    });
}

}  // namespace

TEST_CASE("a layer is written as it was read, whiteouts and all") {
    TestStore from, to;
    REQUIRE(from.import(hiding_image().archive(), "app:1"));
    auto details = from.store->inspect("app:1");
    REQUIRE(details);
    REQUIRE(details->layers.size() == 2);
    std::vector<std::string> tars;
    for (const auto& layer : details->layers) {
        tars.push_back(stream_of(layer.path));
        CHECK(tars.back() == stream_of(layer.path));
    }
    CHECK(tars[1].find("etc/.wh.old") != std::string::npos);
    CHECK(tars[1].find("data/.wh..wh..opq") != std::string::npos);
    REQUIRE(to.import(OciImage(tars).archive(), "app:1"));
    auto again = to.store->inspect("app:1");
    REQUIRE(again);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(snapshot(again->layers[i].path) == snapshot(details->layers[i].path));
    }
    struct stat first{}, second{};
    REQUIRE(::stat((again->layers[1].path / "data/program").c_str(), &first) == 0);
    REQUIRE(::stat((again->layers[1].path / "data/same").c_str(), &second) == 0);
    CHECK(first.st_ino == second.st_ino);
    CHECK((first.st_mode & 07777) == 04755);
    char note[8] = {};
    fs::path program = again->layers[1].path / "data/program";
    CHECK(::getxattr(program.c_str(), "user.note", note, sizeof note) == 5);
}

TEST_CASE("a packed layer says its digests") {
    TestStore from;
    REQUIRE(from.import(hiding_image().archive(), "app:1"));
    auto details = from.store->inspect("app:1");
    REQUIRE(details);
    fs::path file = from.directory.path() / "blob";
    auto blob = image::write_layer_blob(details->layers[1].path, file);
    REQUIRE(blob);
    auto bytes = image::read_file(file);
    REQUIRE(bytes);
    CHECK(blob->size == bytes->size());
    CHECK(blob->hex == sha256(*bytes));
    CHECK(blob->diff_id == sha256(stream_of(details->layers[1].path)));
    CHECK_FALSE(image::write_layer_blob(details->layers[1].path, file));
    std::stop_source stop;
    stop.request_stop();
    auto cancelled = image::write_layer_blob(details->layers[1].path,
                                             from.directory.path() / "other", stop.get_token());
    REQUIRE_FALSE(cancelled);
    CHECK(cancelled.error().code() == ErrorCode::cancelled);
}

TEST_CASE("an exported image is imported as it was") {
    TestStore from, to;
    REQUIRE(from.import(hiding_image().archive(), "app:1"));
    std::string archive;
    {
        auto exported = image::ExportedImage::make(*from.store, "app:1", {});
        REQUIRE(exported);
        std::string piece(65536, '\0');
        for (;;) {
            auto count = (*exported)->read(piece);
            REQUIRE(count);
            if (*count == 0) break;
            archive.append(piece, 0, *count);
        }
    }
    CHECK(fs::is_empty(from.directory.path() / "images/staging"));
    REQUIRE(to.import(archive, "app:1"));
    auto before = from.store->inspect("app:1"), after = to.store->inspect("app:1");
    REQUIRE(before);
    REQUIRE(after);
    CHECK(after->config.env == before->config.env);
    CHECK(after->config.entrypoint == before->config.entrypoint);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(snapshot(after->layers[i].path) == snapshot(before->layers[i].path));
    }
    CHECK_FALSE(image::ExportedImage::make(*from.store, "none:1", {}));
    CHECK_FALSE(image::ExportedImage::make(*from.store, "host", {}));
}

TEST_CASE("with its original blobs an image keeps its documents") {
    TestStore store;
    OciImage oci = hiding_image();
    REQUIRE(store.import(oci.archive(), "app:1"));
    auto details = store.store->inspect("app:1");
    REQUIRE(details);
    REQUIRE(details->documents);
    auto blobs = image::original_blobs(*details);
    REQUIRE(blobs.size() == 2);
    auto same = image::compose(*details, blobs);
    REQUIRE(same);
    CHECK(same->manifest == oci.manifest);
    CHECK(same->config == oci.config);
    blobs[0].hex = std::string(64, 'a');
    blobs[0].diff_id = std::string(64, 'b');
    auto other = image::compose(*details, blobs);
    REQUIRE(other);
    CHECK(other->manifest != oci.manifest);
    CHECK(other->config.find(std::string(64, 'b')) != std::string::npos);
}

TEST_CASE("pruning takes what lost its name, or everything unused") {
    TestStore store;
    auto archive = [](const std::string& content) {
        return OciImage({tar({TarEntry("file", content)})}).archive();
    };
    REQUIRE(store.import(archive("one"), "app:1"));
    auto former = store.store->inspect("app:1");
    REQUIRE(former);
    REQUIRE(store.import(archive("two"), "app:1"));
    REQUIRE(store.import(archive("three"), "other:1"));
    auto nothing = [](const std::string&) { return false; };
    auto used = store.store->prune([](const std::string&) { return true; }, true);
    REQUIRE(used);
    CHECK(used->removed.empty());
    auto pruned = store.store->prune(nothing, false);
    REQUIRE(pruned);
    CHECK(pruned->removed == std::vector<std::string>{"app@" + former->info.digest});
    CHECK(pruned->freed == 3);
    CHECK(store.store->inspect("app:1"));
    auto all = store.store->prune(nothing, true);
    REQUIRE(all);
    CHECK(all->removed == std::vector<std::string>{"app:1", "other:1"});
    CHECK(store.store->list()->size() == 1);
    CHECK(fs::is_empty(store.directory.path() / "images/documents"));
}
