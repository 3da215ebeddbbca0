#include "archives.hpp"
#include "image/entry_path.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

/// As the layer of an image, and as a root file system: both must refuse with the same words.
void check_refused(const std::vector<TarEntry>& entries, const std::string& entry,
                   const std::string& rule) {
    TestStore test;
    std::vector<TarEntry> root = {directory("etc/")};
    root.insert(root.end(), entries.begin(), entries.end());
    for (const std::string& archive : {tar(root), OciImage({tar(entries)}).archive()}) {
        Error error = test.refused(archive);
        CHECK(error.code() == ErrorCode::invalid_argument);
        CHECK_THAT(error.message(), Catch::Contains(entry));
        CHECK_THAT(error.message(), Catch::Contains(rule));
    }
}

}  // namespace

TEST_CASE("names that leave the layer are refused") {
    check_refused({TarEntry("../evil", "x")}, "../evil", "must not contain \"..\"");
    check_refused({TarEntry("a/../../evil", "x")}, "a/../../evil", "must not contain \"..\"");
    check_refused({TarEntry("a/..", "x")}, "a/..", "must not contain \"..\"");
    check_refused({TarEntry("/tmp/evil", "x")}, "/tmp/evil", "must not be absolute");
    check_refused({directory("../evil/")}, "../evil", "must not contain \"..\"");
}

TEST_CASE("a name that would be cut at a NUL is refused") {
    using namespace std::string_view_literals;
    CHECK(image::parse_entry_path("a/b"));
    CHECK_FALSE(image::parse_entry_path("a/b\0c"sv));
}

TEST_CASE("nothing is written through a symbolic link of the archive") {
    TemporaryDirectory outside;
    auto away = soft_link("link", outside.path().string());
    check_refused({away, TarEntry("link/evil", "x")}, "link/evil", "symbolic link");
    check_refused({away, directory("link/evil/")}, "link/evil", "symbolic link");
    check_refused({away, TarEntry("link/a/b/evil", "x")}, "link/a/b/evil", "symbolic link");
    check_refused({away, soft_link("link/evil", "x")}, "link/evil", "symbolic link");
    check_refused({away, TarEntry("link/.wh.x")}, "link/.wh.x", "symbolic link");
    check_refused({soft_link("up", ".."), TarEntry("up/evil", "x")}, "up/evil", "symbolic link");
    check_refused({soft_link("in", "etc"), TarEntry("in/evil", "x")}, "in/evil", "symbolic link");
    CHECK(snapshot(outside.path()).empty());
}

TEST_CASE("a file replaces a symbolic link instead of writing through it") {
    TemporaryDirectory outside;
    std::ofstream(outside.path() / "victim") << "untouched";
    TestStore test;
    REQUIRE(test.import(
        tar({directory("etc/"), soft_link("etc/x", (outside.path() / "victim").string()),
             TarEntry("etc/x", "new")})));
    std::string victim, made;
    std::ifstream(outside.path() / "victim") >> victim;
    std::ifstream(test.root() / "etc/x") >> made;
    CHECK(victim == "untouched");
    CHECK(made == "new");
}

TEST_CASE("hard links stay within their layer") {
    check_refused({hard_link("etc/evil", "../../../etc/passwd")}, "etc/evil", "its own layer");
    check_refused({hard_link("etc/evil", "/etc/passwd")}, "etc/evil", "does not hold");
    check_refused({soft_link("link", "/etc"), hard_link("etc/evil", "link/passwd")}, "etc/evil",
                  "does not hold");
    check_refused({hard_link("etc/evil", "later"), TarEntry("later", "x")}, "etc/evil",
                  "does not hold");
    check_refused({TarEntry(".wh.gone"), hard_link("etc/evil", "gone")}, "etc/evil",
                  "does not hold");
    check_refused({directory("d/"), hard_link("etc/evil", "d")}, "etc/evil", "directory");
}

TEST_CASE("whiteouts that name no file are refused") {
    check_refused({TarEntry("etc/.wh.")}, "etc/.wh.", "must name a file");
    check_refused({TarEntry("etc/.wh..")}, "etc/.wh..", "must name a file");
    check_refused({TarEntry("etc/.wh...")}, "etc/.wh...", "must name a file");
    check_refused({TarEntry(".wh.etc/passwd", "x")}, ".wh.etc/passwd", "below a whiteout");
}

TEST_CASE("ids, names and kinds outside the rules are refused") {
    check_refused({TarEntry("a", "x").owner(65536, 0)}, "\"a\"", "below 65536");
    check_refused({TarEntry("a", "x").owner(0, 70000)}, "\"a\"", "0:70000");
    check_refused({TarEntry("a", "x").pax("uid", "4294967296")}, "\"a\"", "below 65536");
    check_refused({TarEntry("a", "x").pax("path", std::string(256, 'n'))}, "nnn", "255 bytes");
    std::string deep;
    for (int i = 0; i < 2100; ++i)
        deep += "d/";
    check_refused({TarEntry("a", "x").pax("path", deep)}, "d/d", "4095 bytes");
    check_refused({TarEntry("a", "x"), TarEntry("a/b", "x")}, "a/b", "directories only");
    check_refused({directory("a/"), TarEntry("a/b", "x"), TarEntry("a", "x")}, "\"a\"",
                  "cannot be replaced");
}

TEST_CASE("very deep trees are unpacked and leave nothing when refused") {
    std::string deep;
    for (int i = 0; i < 2000; ++i)
        deep += "d/";
    TestStore test;
    Error error = test.refused(
        tar({directory("etc/"), TarEntry("a", "x").pax("path", deep + "f"), TarEntry("..", "x")}));
    CHECK_THAT(error.message(), Catch::Contains("\"..\""));
}

TEST_CASE("bombs are stopped by size, by number and by ratio") {
    TestStore test;
    image::ImportLimits limits;
    limits.max_unpacked = 1000;
    Error error =
        test.refused(tar({directory("etc/"), TarEntry("etc/big", std::string(1001, 'x'))}), limits);
    CHECK(error.code() == ErrorCode::too_large);
    CHECK_THAT(error.message(), Catch::Contains("etc/big") && Catch::Contains("1000 bytes"));

    limits = {};
    limits.max_entries = 3;
    error = test.refused(tar({directory("etc/"), TarEntry("etc/a/b/c", "x")}), limits);
    CHECK(error.code() == ErrorCode::too_large);
    CHECK_THAT(error.message(), Catch::Contains("3 entries"));

    std::string claim = tar({directory("etc/"), TarEntry("etc/huge").pax("size", "70000000000")});
    error = test.refused(claim);
    CHECK(error.code() == ErrorCode::too_large);
    CHECK_THAT(error.message(), Catch::Contains("etc/huge") && Catch::Contains("bytes together"));

    limits = {};
    limits.max_ratio = 50;
    std::string dense = tar({TarEntry("etc/dense", std::string(std::size_t{96} << 20, 'x'))});
    error = test.refused(OciImage({dense}).archive(), limits);
    CHECK(error.code() == ErrorCode::too_large);
    CHECK_THAT(error.message(), Catch::Contains("50 times"));
}

TEST_CASE("a stream that unpacks to nothing but zeros is stopped by ratio") {
    // The zeros lie behind the archive's end, where no entry accounts for them.
    std::string layer = tar({TarEntry("etc/a", "x")}) + std::string(std::size_t{96} << 20, '\0');
    TestStore test;
    image::ImportLimits limits;
    limits.max_ratio = 50;
    CHECK(test.refused(gzip(layer), limits).code() == ErrorCode::too_large);
    CHECK(test.refused(OciImage({layer}).archive(), limits).code() == ErrorCode::too_large);
    CHECK(test.refused(zstd(layer), limits).code() == ErrorCode::too_large);
}

TEST_CASE("data compressed twice is refused") {
    TestStore test;
    std::string root = tar({TarEntry("etc/a", "x")});
    for (const std::string& archive : {gzip(gzip(root)), zstd(zstd(root)), zstd(gzip(root))}) {
        CHECK(test.refused(archive).code() == ErrorCode::invalid_argument);
    }
}

TEST_CASE("damaged, cut and foreign data is refused") {
    std::string root = tar({TarEntry("etc/a", std::string(100'000, 'x')), TarEntry("etc/b", "y")});
    TestStore test;
    std::string packed = gzip(root);
    CHECK(test.refused(packed.substr(0, packed.size() - 20)).code() == ErrorCode::invalid_argument);
    CHECK(test.refused(packed.substr(0, 30)).code() == ErrorCode::invalid_argument);
    std::string flipped = packed;
    flipped[flipped.size() - 6] ^= 1;
    CHECK(test.refused(flipped).code() == ErrorCode::invalid_argument);
    std::string frame = zstd(root);
    CHECK(test.refused(frame.substr(0, frame.size() - 5)).code() == ErrorCode::invalid_argument);
    CHECK(test.refused(root.substr(0, 50'000)).code() == ErrorCode::invalid_argument);
    CHECK(test.refused("").code() == ErrorCode::invalid_argument);
    CHECK(test.refused(std::string(10240, '\0')).code() == ErrorCode::invalid_argument);
    CHECK(test.refused("this is no archive at all").code() == ErrorCode::invalid_argument);
    CHECK(test.refused(tar({directory("./")})).code() == ErrorCode::invalid_argument);
    Error error =
        test.refused(std::string("\xfd"
                                 "7zXZ\0\0\0",
                                 8));
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK_THAT(error.message(), Catch::Contains("xz"));
}

TEST_CASE("an error of the source is handed on and leaves nothing") {
    std::string root = tar({TarEntry("etc/a", std::string(100'000, 'x'))});
    for (std::size_t good : {std::size_t{0}, std::size_t{1000}, std::size_t{60'000}}) {
        TestStore test;
        auto before = snapshot(test.directory.path());
        auto bytes = source_of(root.substr(0, good));
        image::ByteSource source = [&](std::span<char> into) -> Result<std::size_t> {
            auto count = bytes(into);
            if (count && *count == 0) return Error(ErrorCode::cancelled, "the client went away");
            return count;
        };
        auto result = test.store->import_archive("test", source);
        REQUIRE_FALSE(result);
        CHECK(result.error().code() == ErrorCode::cancelled);
        CHECK(snapshot(test.directory.path()) == before);
    }
}

TEST_CASE("a map of more holes than memory should hold is refused") {
    std::string map = "2000000\n";
    for (int i = 0; i < 2'000'000; ++i)
        map += "0\n0\n";
    map.resize((map.size() + 511) / 512 * 512);
    TarEntry entry("etc/GNUSparseFile.0/holes", map);
    entry.pax("GNU.sparse.major", "1").pax("GNU.sparse.minor", "0");
    entry.pax("GNU.sparse.name", "etc/holes").pax("GNU.sparse.realsize", "10");
    TestStore test;
    Error error = test.refused(gzip(tar({entry})));
    CHECK(error.code() == ErrorCode::too_large);
    CHECK_THAT(error.message(), Catch::Contains("4 MiB"));
}
