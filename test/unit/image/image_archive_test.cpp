#include "archives.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Texts = std::vector<std::string>;

std::string lower() {
    return tar({directory("etc/"), TarEntry("etc/a", "lower")});
}
std::string upper() {
    return tar({directory("etc/"), TarEntry("etc/.wh.a"), TarEntry("b", "up")});
}

/// docker save as it was before OCI: one directory a layer, config by its digest.
std::string docker_save(const OciImage& image, const std::vector<std::string>& tars,
                        const std::string& tags = "\"test:latest\"") {
    std::string config = sha256(image.config) + ".json";
    std::vector<TarEntry> entries;
    std::string layers;
    for (std::size_t i = 0; i < tars.size(); ++i) {
        std::string member = "layer-" + std::to_string(i) + "/layer.tar";
        entries.emplace_back(member, tars[i]);
        layers += (i > 0 ? ",\"" : "\"") + member + "\"";
    }
    entries.emplace_back(config, image.config);
    entries.emplace_back("manifest.json", R"([{"Config":")" + config + R"(","RepoTags":[)" + tags +
                                              R"(],"Layers":[)" + layers + "]}]");
    return tar(entries);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

/// Seals again with other documents: `spoil` changes them, digests and sizes follow.
std::string with_manifest(OciImage image, const std::string& manifest) {
    std::string old = sha256(image.manifest);
    image.index = replaced(image.index, old, sha256(manifest));
    image.index = replaced(image.index, ":" + std::to_string(image.manifest.size()),
                           ":" + std::to_string(manifest.size()));
    image.blobs.emplace_back(sha256(manifest), manifest);
    return image.archive();
}

}  // namespace

TEST_CASE("an OCI layout is imported with its layers, uppermost first, and its config") {
    TestStore test;
    OciImage image({lower(), upper()});
    auto info = test.import(image.archive(), "example:1");
    REQUIRE(info);
    CHECK(info->reference == "example:1");
    CHECK(info->digest == image.manifest_digest());
    CHECK(info->size == 7);
    auto rootfs = test.store->resolve("example:1");
    REQUIRE(rootfs);
    REQUIRE(rootfs->layers.size() == 2);
    CHECK(rootfs->digest == info->digest);
    CHECK(rootfs->usr.empty());
    CHECK(fs::exists(rootfs->layers[0] / "b"));
    CHECK(fs::exists(rootfs->layers[1] / "etc/a"));
    CHECK("sha256:" + rootfs->layers[0].filename().string() == image.layers[1].diff_id);
    CHECK(rootfs->config.env == Pairs{{"PATH", "/bin"}, {"A", "b=c"}});
    CHECK(rootfs->config.user == "1000:1000");
    CHECK(rootfs->config.working_directory == "/srv");
    CHECK(rootfs->config.entrypoint == Texts{"/bin/sh"});
    CHECK(rootfs->config.cmd == Texts{"-c", "x"});
}

TEST_CASE("the whole archive and each layer may be plain, gzip or zstd") {
    for (auto* outer : {gzip, zstd}) {
        TestStore test;
        OciImage image(Texts{});
        image.add_layer(lower(), zstd(lower()));
        image.add_layer(upper(), upper());
        image.layers[0].media_type = "application/vnd.oci.image.layer.v1.tar+zstd";
        image.layers[1].media_type = "application/vnd.docker.image.rootfs.diff.tar.gzip";
        image.seal();
        REQUIRE(test.import(outer(image.archive())));
        CHECK(test.store->resolve("test")->layers.size() == 2);
    }
}

TEST_CASE("a docker-save archive is imported, whatever its members are called") {
    OciImage image({lower(), upper()});
    std::string plain = docker_save(image, {lower(), upper()});
    for (const std::string& archive :
         {plain, gzip(plain), zstd(plain), docker_save(image, {gzip(lower()), zstd(upper())})}) {
        TestStore test;
        auto info = test.import(archive);
        REQUIRE(info);
        CHECK(info->digest == "sha256:" + sha256(image.config));
        auto rootfs = test.store->resolve("test");
        REQUIRE(rootfs->layers.size() == 2);
        CHECK(fs::exists(rootfs->layers[0] / "b"));
    }
}

TEST_CASE("a docker-save archive may hold layers once and link to them") {
    OciImage image({lower(), upper()});
    std::string config = "config.json";
    std::string archive = tar({
        TarEntry("aa.tar", lower()),
        soft_link("old/layer.tar", "../aa.tar"),
        TarEntry("bb.tar", upper()),
        hard_link("new/layer.tar", "bb.tar"),
        TarEntry(config, image.config),
        TarEntry("manifest.json", R"([{"Config":"config.json","Layers":["old/layer.tar",)"
                                  R"("new/layer.tar"]}])"),
    });
    TestStore test;
    REQUIRE(test.import(archive));
    CHECK(test.store->resolve("test")->layers.size() == 2);
}

TEST_CASE("links of an archive lead nowhere outside it") {
    OciImage image({lower()});
    TestStore test;
    for (const char* target : {"/etc/passwd", "../../../etc/passwd", "layer.tar"}) {
        std::string archive = tar({
            soft_link("layer.tar", target),
            TarEntry("config.json", image.config),
            TarEntry("manifest.json", R"([{"Config":"config.json","Layers":["layer.tar"]}])"),
        });
        CHECK_THAT(test.refused(archive).message(), Catch::Contains("does not hold the layer"));
    }
}

TEST_CASE("of several platforms this machine's is taken") {
    OciImage other({upper()}), mine({lower()});
    other.architecture = "s390x";
    other.seal();
    auto entry = [](const OciImage& image, const std::string& platform) {
        return R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":")" +
               image.manifest_digest() + R"(","size":)" + std::to_string(image.manifest.size()) +
               R"(,"platform":)" + platform + "}";
    };
    std::string both =
        R"({"manifests":[)" + entry(other, R"({"os":"linux","architecture":"s390x"})") + "," +
        entry(other, R"({"os":"unknown","architecture":"unknown"})") + "," +
        entry(mine, R"({"os":"linux","architecture":")" + mine.architecture + "\"}") + "]}";
    // The index of the layout points to the index of the image.
    mine.blobs.emplace_back(sha256(both), both);
    mine.index = R"({"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json",)"
                 R"("digest":"sha256:)" +
                 sha256(both) + R"(","size":)" + std::to_string(both.size()) + "}]}";
    TestStore test;
    auto info = test.import(mine.archive());
    REQUIRE(info);
    CHECK(info->digest == mine.manifest_digest());

    mine.index =
        R"({"manifests":[)" + entry(other, R"({"os":"linux","architecture":"s390x"})") + "]}";
    Error error = test.refused(mine.archive());
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK_THAT(error.message(), Catch::Contains("s390x"));
    // A layout that does not say so, but whose config does.
    CHECK(test.refused(other.archive()).code() == ErrorCode::unsupported);
}

TEST_CASE("an index that leads to itself ends") {
    OciImage image({lower()});
    std::string self = R"({"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json",)"
                       R"("digest":"sha256:)";
    std::string inner = self + sha256(image.manifest) + R"(","size":1}]})";
    for (int i = 0; i < 8; ++i) {
        image.blobs.emplace_back(sha256(inner), inner);
        image.index = self + sha256(inner) + R"(","size":)" + std::to_string(inner.size()) + "}]}";
        inner = image.index;
    }
    TestStore test;
    CHECK(test.refused(image.archive()).code() == ErrorCode::invalid_argument);
}

TEST_CASE("of several images the one named like the reference is taken") {
    OciImage first({lower()}), second({upper()});
    auto manifest = [](const OciImage& image, const std::string& tag, const std::string& layer) {
        return R"({"Config":")" + sha256(image.config) + R"(.json","RepoTags":[")" + tag +
               R"("],"Layers":[")" + layer + "\"]}";
    };
    std::string archive = tar({
        TarEntry("a.tar", lower()),
        TarEntry("b.tar", upper()),
        TarEntry(sha256(first.config) + ".json", first.config),
        TarEntry(sha256(second.config) + ".json", second.config),
        TarEntry("manifest.json", "[" + manifest(first, "docker.io/library/one:1", "a.tar") + "," +
                                      manifest(second, "two:2", "b.tar") + "]"),
    });
    TestStore test;
    auto one = test.import(archive, "one:1");
    REQUIRE(one);
    CHECK(one->digest == "sha256:" + sha256(first.config));
    auto two = test.import(archive, "two:2");
    REQUIRE(two);
    CHECK(two->digest == "sha256:" + sha256(second.config));
    Error error = test.refused(archive);
    CHECK_THAT(error.message(), Catch::Contains("one:1") && Catch::Contains("two:2"));
}

TEST_CASE("no layers, empty layers and repeated layers") {
    std::string nothing(1024, '\0');
    TestStore test;
    REQUIRE(test.import(OciImage(Texts{}).archive(), "none"));
    auto rootfs = test.store->resolve("none");
    REQUIRE(rootfs->layers.size() == 1);
    CHECK(fs::is_empty(rootfs->layers[0]));

    REQUIRE(test.import(OciImage({nothing}).archive(), "empty"));
    rootfs = test.store->resolve("empty");
    REQUIRE(rootfs->layers.size() == 1);
    CHECK(fs::is_empty(rootfs->layers[0]));

    // overlayfs takes a directory once: it counts where it is uppermost.
    OciImage image({lower(), nothing, upper(), lower()});
    auto info = test.import(image.archive(), "repeated");
    REQUIRE(info);
    CHECK(info->size == 7);
    rootfs = test.store->resolve("repeated");
    REQUIRE(rootfs->layers.size() == 2);
    CHECK(fs::exists(rootfs->layers[0] / "etc/a"));
    CHECK(fs::exists(rootfs->layers[1] / "b"));

    REQUIRE(test.import(OciImage({tar({TarEntry("etc/.wh.x")})}).archive(), "whiteouts"));
    CHECK(test.store->resolve("whiteouts")->layers.size() == 1);

    // overlayfs does not look for the mark on the root itself.
    std::string opaque = tar({TarEntry(".wh..wh..opq"), TarEntry("only", "x")});
    REQUIRE(test.import(OciImage({lower(), opaque}).archive(), "opaque"));
    rootfs = test.store->resolve("opaque");
    REQUIRE(rootfs->layers.size() == 1);
    CHECK(fs::exists(rootfs->layers[0] / "only"));
}

TEST_CASE("wrong digests and sizes are refused and named") {
    TestStore test;
    OciImage image({lower(), upper()});

    OciImage blob = image;
    std::string hex = blob.blobs[1].first;
    blob.blobs[1].second = gzip(tar({TarEntry("evil", "x")}));
    CHECK_THAT(test.refused(blob.archive()).message(), Catch::Contains(hex));
    blob.blobs[1].second = image.blobs[1].second;
    blob.blobs[1].second[4] ^= 1;  // the time in gzip's header: same size, same content
    Error error = test.refused(blob.archive());
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK_THAT(error.message(), Catch::Contains(hex) && Catch::Contains("digest"));

    OciImage diff = image;
    diff.layers[0].diff_id = "sha256:" + std::string(64, 'd');
    diff.seal();
    error = test.refused(diff.archive());
    CHECK_THAT(error.message(), Catch::Contains(std::string(64, 'd')));

    std::string size = "\"size\":" + std::to_string(image.layers[0].blob.size());
    error = test.refused(with_manifest(image, replaced(image.manifest, size, size + "0")));
    CHECK_THAT(error.message(), Catch::Contains("size"));

    OciImage config = image;
    for (auto& [name, content] : config.blobs) {
        if (content == config.config) content[2] ^= 1;
    }
    CHECK_THAT(test.refused(config.archive()).message(), Catch::Contains(sha256(image.config)));
    OciImage manifest = image;
    manifest.blobs.back().second += " ";
    CHECK_THAT(test.refused(manifest.archive()).message(), Catch::Contains("size"));

    std::string docker = docker_save(image, {lower(), upper()});
    CHECK_THAT(test.refused(replaced(docker, "\"WorkingDir\"", "\"WorkingDIR\"")).message(),
               Catch::Contains(sha256(image.config)));
    CHECK_THAT(test.refused(docker_save(image, {upper(), lower()})).message(),
               Catch::Contains("digest"));
}

TEST_CASE("missing parts are refused and named") {
    TestStore test;
    OciImage image({lower(), upper()});
    for (std::size_t i = 0; i < image.blobs.size(); ++i) {
        OciImage cut = image;
        std::string hex = cut.blobs[i].first;
        cut.blobs.erase(cut.blobs.begin() + static_cast<std::ptrdiff_t>(i));
        Error error = test.refused(cut.archive());
        CHECK(error.code() == ErrorCode::invalid_argument);
        CHECK_THAT(error.message(), Catch::Contains(hex));
    }
    OciImage fewer = image;
    fewer.config = replaced(fewer.config, "\"" + fewer.layers[0].diff_id + "\",", "");
    Error error = test.refused(docker_save(fewer, {lower(), upper()}));
    CHECK_THAT(error.message(), Catch::Contains("diff_ids") && Catch::Contains("2 layers"));
}

TEST_CASE("documents that are not what they must be are refused") {
    TestStore test;
    OciImage image({lower()});
    std::string deep(100'000, '[');
    for (const std::string& garbage :
         {std::string("{"), std::string(), std::string("[]"), std::string("null"), deep,
          std::string(R"({"manifests":{}})"), std::string(R"({"manifests":[1]})"),
          std::string(R"({"manifests":[]})"),
          std::string(R"({"manifests":[{"digest":"sha256:zz","size":1}]})"),
          std::string(R"({"manifests":[{"digest":"sha512:aa","size":1}]})"),
          std::string(R"({"manifests":[{"digest":12,"size":1}]})"),
          R"({"manifests":[{"digest":"sha256:)" + std::string(64, 'a') + R"(","size":-1}]})",
          R"({"manifests":[{"digest":"sha256:)" + std::string(64, 'a') + R"(","size":"1"}]})"}) {
        INFO(garbage.substr(0, 80));
        OciImage spoilt = image;
        spoilt.index = garbage;
        Error error = test.refused(spoilt.archive());
        CHECK((error.code() == ErrorCode::invalid_argument ||
               error.code() == ErrorCode::unsupported));
        CHECK_THAT(error.message(), Catch::Contains("index.json"));
    }
    for (const char* garbage : {"{}", "[1]", "[]", "[{}]", R"([{"Config":1}])",
                                R"([{"Config":"c","Layers":"x"}])", R"([{"Config":"absent"}])"}) {
        INFO(garbage);
        CHECK(test.refused(tar({TarEntry("manifest.json", garbage)})).code() ==
              ErrorCode::invalid_argument);
    }
    OciImage large = image;
    large.index = "\"" + std::string(std::size_t{5} << 20, 'x') + "\"";
    CHECK(test.refused(large.archive()).code() == ErrorCode::too_large);
}

TEST_CASE("configs that cannot be honoured are refused") {
    TestStore test;
    for (const char* config : {R"({"Env":["NOVALUE"]})", R"({"Env":["=x"]})", R"({"Env":[1]})",
                               R"({"Cmd":"x"})", R"({"User":7})", R"({"Env":["A=\u0000"]})",
                               R"({"Labels":{"a":1}})", R"({"ExposedPorts":[]})", "[]"}) {
        INFO(config);
        OciImage image({lower()});
        image.run_config = config;
        image.seal();
        CHECK(test.refused(image.archive()).code() == ErrorCode::invalid_argument);
    }
    OciImage image({lower()});
    image.run_config = R"({"Env":null,"Cmd":null,"Entrypoint":null,"Labels":null})";
    image.seal();
    CHECK(test.import(image.archive()));
}

TEST_CASE("labels and exposed ports are kept, also over a restart") {
    TestStore test;
    OciImage image({lower()});
    image.run_config = R"({"Labels":{"a":"1","b":""},"ExposedPorts":{"80/tcp":{}}})";
    image.seal();
    REQUIRE(test.import(image.archive()));
    auto reopened = image::Store::open(test.directory.path() / "images");
    REQUIRE(reopened);
    test.store = std::move(*reopened);
    auto rootfs = test.store->resolve("test");
    REQUIRE(rootfs);
    CHECK(rootfs->config.labels == std::map<std::string, std::string>{{"a", "1"}, {"b", ""}});
    CHECK(rootfs->config.exposed_ports == std::vector<std::string>{"80/tcp"});
}

TEST_CASE("layers of unknown kinds are refused by name") {
    OciImage image({lower()});
    image.layers[0].media_type = "application/vnd.oci.image.layer.v1.tar+gzip+encrypted";
    image.seal();
    TestStore test;
    Error error = test.refused(image.archive());
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK_THAT(error.message(), Catch::Contains("encrypted"));
}

TEST_CASE("a root file system may hold files named like those of images") {
    TestStore test;
    std::string root =
        tar({TarEntry("manifest.json", "not docker's"), TarEntry("index.json", "x"),
             TarEntry("oci-layout", "x"), directory("blobs/"), TarEntry("usr/bin/program", "x")});
    REQUIRE(test.import(root));
    CHECK(fs::exists(test.root() / "manifest.json"));
    CHECK(fs::exists(test.root() / "usr/bin/program"));
}

TEST_CASE("a root whose first name says nothing is unpacked all the same") {
    TestStore test;
    REQUIRE(test.import(gzip(tar({directory("./"), TarEntry("./app", "x")}))));
    CHECK(fs::exists(test.root() / "app"));
}
