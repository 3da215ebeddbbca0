#include "archives.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

struct stat status_of(const fs::path& path) {
    struct stat status{};
    INFO(path.string());
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status;
}

std::string content_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string attribute(const fs::path& path, const char* name) {
    char value[256];
    ssize_t size = ::lgetxattr(path.c_str(), name, value, sizeof value);
    return size < 0 ? "(absent)" : std::string(value, static_cast<std::size_t>(size));
}

bool is_whiteout(const fs::path& path) {
    struct stat status = status_of(path);
    return S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
}

/// A first entry that shows a root file system, then these.
std::string root_tar(std::vector<TarEntry> entries) {
    entries.insert(entries.begin(), directory("etc/"));
    return tar(entries);
}

}  // namespace

TEST_CASE("a root file system keeps owners, modes, times and links") {
    TestStore test;
    auto info = test.import(root_tar({
        directory("usr/").mode(0750).time(1'100'000'000),
        directory("usr/bin/", 02755).owner(0, 50).time(1'200'000'000),
        TarEntry("usr/bin/su", "program").mode(04755).owner(0, 0).time(1'300'000'000),
        TarEntry("usr/bin/data", "x").mode(0600).owner(1000, 65535),
        hard_link("usr/bin/sudo", "usr/bin/su"),
        hard_link("usr/bin/doas", "/usr/bin/su"),
        soft_link("bin", "usr/bin").owner(7, 8),
        soft_link("etc/away", "/etc/passwd"),
        TarEntry("run/pipe").type('6').mode(0620).owner(3, 4),
    }));
    REQUIRE(info);
    CHECK(info->size == 8);
    CHECK(info->digest.starts_with("sha256:"));
    fs::path root = test.root();
    CHECK(status_of(root / "usr").st_mode == (S_IFDIR | 0750));
    CHECK(status_of(root / "usr").st_mtim.tv_sec == 1'100'000'000);
    CHECK(status_of(root / "usr/bin").st_mode == (S_IFDIR | 02755));
    CHECK(status_of(root / "usr/bin").st_gid == 50);
    CHECK(status_of(root / "usr/bin").st_mtim.tv_sec == 1'200'000'000);
    CHECK(status_of(root / "usr/bin/su").st_mode == (S_IFREG | 04755));
    CHECK(status_of(root / "usr/bin/su").st_gid == 0);
    CHECK(status_of(root / "usr/bin/su").st_mtim.tv_sec == 1'300'000'000);
    CHECK(status_of(root / "usr/bin/su").st_nlink == 3);
    CHECK(status_of(root / "usr/bin/data").st_uid == 1000);
    CHECK(status_of(root / "usr/bin/data").st_gid == 65535);
    CHECK(content_of(root / "usr/bin/doas") == "program");
    CHECK(fs::read_symlink(root / "bin") == "usr/bin");
    CHECK(status_of(root / "bin").st_uid == 7);
    CHECK(fs::read_symlink(root / "etc/away") == "/etc/passwd");
    CHECK(status_of(root / "run/pipe").st_mode == (S_IFIFO | 0620));
    CHECK(status_of(root / "run").st_mode == (S_IFDIR | 0755));
}

TEST_CASE("user attributes and file capabilities are kept, overlay's own are not") {
    using namespace std::string_literals;
    std::string v2 =
        "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"s;
    std::string v3 = v2 + "\xa0\x86\x01\x00"s;
    v3[3] = '\x03';
    TestStore test;
    REQUIRE(test.import(root_tar({
        TarEntry("a", "x")
            .pax("SCHILY.xattr.user.note", "hello")
            .pax("SCHILY.xattr.trusted.overlay.opaque", "y")
            .pax("SCHILY.xattr.user.overlay.opaque", "y")
            .pax("SCHILY.xattr.security.capability", v2),
        TarEntry("b", "x").pax("SCHILY.xattr.security.capability", v3),
        directory("c/").pax("SCHILY.xattr.user.note", "dir"),
    })));
    fs::path root = test.root();
    CHECK(attribute(root / "a", "user.note") == "hello");
    CHECK(attribute(root / "a", "trusted.overlay.opaque") == "(absent)");
    CHECK(attribute(root / "a", "user.overlay.opaque") == "(absent)");
    CHECK(attribute(root / "a", "security.capability") == v2);
    CHECK(attribute(root / "b", "security.capability") == v2);
    CHECK(attribute(root / "c", "user.note") == "dir");
}

TEST_CASE("whiteouts become what overlayfs takes for them") {
    TestStore test;
    REQUIRE(test.import(root_tar({
        TarEntry("etc/.wh.gone"),
        TarEntry("etc/.wh..wh.plnk"),
        directory("srv/"),
        TarEntry("srv/.wh..wh..opq"),
        TarEntry("srv/new", "x"),
        TarEntry(".wh.replaced"),
        directory("replaced/"),
        TarEntry("replaced/inside", "x"),
        directory("both/"),
        TarEntry(".wh.both"),
        TarEntry("kept", "x"),
        TarEntry(".wh.kept"),
        TarEntry("deep/.wh.below"),
        TarEntry("deep/below/file", "x"),
    })));
    fs::path root = test.root();
    CHECK(is_whiteout(root / "etc/gone"));
    CHECK_FALSE(fs::exists(fs::symlink_status(root / "etc/.wh.gone")));
    CHECK_FALSE(fs::exists(fs::symlink_status(root / "etc/.wh..wh.plnk")));
    CHECK(attribute(root / "srv", "trusted.overlay.opaque") == "y");
    CHECK(content_of(root / "srv/new") == "x");
    CHECK(attribute(root / "replaced", "trusted.overlay.opaque") == "y");
    CHECK(attribute(root / "both", "trusted.overlay.opaque") == "y");
    CHECK(content_of(root / "kept") == "x");
    CHECK(attribute(root / "deep/below", "trusted.overlay.opaque") == "y");
    CHECK(attribute(root / "deep", "trusted.overlay.opaque") == "(absent)");
}

TEST_CASE("the last of several entries of one name counts") {
    TestStore test;
    REQUIRE(test.import(root_tar({
        TarEntry("a", "first"),
        TarEntry("a", "second"),
        soft_link("b", "etc"),
        directory("b/"),
        TarEntry("b/file", "x"),
        directory("c/"),
        TarEntry("c", "file"),
        directory("d/"),
        directory("d/e/"),
        TarEntry("d/e", "file"),
        TarEntry("d/f", "x"),
    })));
    fs::path root = test.root();
    CHECK(content_of(root / "a") == "second");
    CHECK(content_of(root / "b/file") == "x");
    CHECK(content_of(root / "c") == "file");
    CHECK(content_of(root / "d/f") == "x");
}

TEST_CASE("names are bytes, long names and unnormalised ones included") {
    std::string longest = "d/" + std::string(255, 'n');
    TestStore test;
    REQUIRE(test.import(root_tar({
        TarEntry("h\xc3\xa9llo", "x"),
        TarEntry("short", "x").pax("path", "p\xc3\xa4x"),
        TarEntry("bad\xff", "x"),
        TarEntry("short", "x").pax("path", longest),
        TarEntry(".//e/./f", "x"),
    })));
    fs::path root = test.root();
    for (const std::string& name : {std::string("h\xc3\xa9llo"), std::string("p\xc3\xa4x"),
                                    std::string("bad\xff"), longest, std::string("e/f")}) {
        INFO(name);
        CHECK(content_of(root / name) == "x");
    }
}

TEST_CASE("device nodes are passed over") {
    TestStore test;
    REQUIRE(test.import(root_tar({TarEntry("dev/null").type('3'), TarEntry("dev/sda").type('4'),
                                  TarEntry("dev/after", "x")})));
    fs::path root = test.root();
    CHECK_FALSE(fs::exists(fs::symlink_status(root / "dev/null")));
    CHECK_FALSE(fs::exists(fs::symlink_status(root / "dev/sda")));
    CHECK(content_of(root / "dev/after") == "x");
}

TEST_CASE("sparse files count with their holes and keep them") {
    // GNU's old sparse header: one piece of 512 bytes at 1 MiB.
    std::string archive = tar({TarEntry("etc/sparse", std::string(512, 'd')).type('S')});
    auto put = [&](std::size_t at, const char* octal) { archive.replace(at, 12, octal, 12); };
    archive.replace(257, 8, "ustar  \0", 8);
    put(386, "00004000000\0");
    put(398, "00000001000\0");
    put(483, "00004001000\0");
    unsigned sum = 0;
    archive.replace(148, 8, "        ");
    for (std::size_t i = 0; i < 512; ++i)
        sum += static_cast<unsigned char>(archive[i]);
    char text[8];
    std::snprintf(text, sizeof text, "%06o", sum);
    archive.replace(148, 7, text, 7);

    TestStore test;
    auto info = test.import(archive);
    REQUIRE(info);
    CHECK(info->size == (1U << 20) + 512);
    struct stat status = status_of(test.root() / "etc/sparse");
    CHECK(status.st_size == (1 << 20) + 512);
    CHECK(status.st_blocks * 512 < (1 << 20));
    image::ImportLimits limits;
    limits.max_unpacked = 1 << 20;
    CHECK(test.refused(archive, limits).code() == ErrorCode::too_large);
}
