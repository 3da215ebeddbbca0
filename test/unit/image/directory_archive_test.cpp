#include "image/directory_archive.hpp"

#include "archives.hpp"
#include "base/scope_exit.hpp"

#include <catch2/catch.hpp>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
}

image::ByteSource archive_of(const fs::path& directory) {
    auto opened = image::DirectoryArchive::open(directory);
    REQUIRE(opened);
    auto shared = std::make_shared<image::DirectoryArchive>(std::move(*opened));
    return [shared](std::span<char> into) { return shared->read(into); };
}

}  // namespace

TEST_CASE("a directory comes out of the store as it went in") {
    TemporaryDirectory directory;
    fs::path root = directory.path() / "root";
    write(root / "usr/bin/program", std::string(700'000, 'p'));
    write(root / "etc/empty", "");
    write(root / "usr/share/n\xc3\xa4me", "x");
    write(root / "usr/share/bad\xff", "x");
    write(root / ("usr/share/" + std::string(255, 'n')), "long");
    fs::create_hard_link(root / "usr/bin/program", root / "usr/bin/same");
    fs::create_directory_symlink("usr/bin", root / "bin");
    fs::create_symlink("/etc/shadow", root / "etc/away");
    fs::create_directories(root / "var/empty");
    REQUIRE(::mkfifo((root / "run-pipe").c_str(), 0600) == 0);
    REQUIRE(::chown((root / "usr/bin/program").c_str(), 12, 34) == 0);
    REQUIRE(::chmod((root / "usr/bin/program").c_str(), 04711) == 0);
    REQUIRE(::chmod((root / "var/empty").c_str(), 01777) == 0);
    REQUIRE(::setxattr((root / "etc/empty").c_str(), "user.note", "v", 1, 0) == 0);

    TestStore test;
    auto info = test.store->import_archive("test", archive_of(root));
    REQUIRE(info);
    CHECK(snapshot(test.root()) == snapshot(root));
    char value[8];
    CHECK(::getxattr((test.root() / "etc/empty").c_str(), "user.note", value, 8) == 1);
    struct stat in{}, out{};
    REQUIRE(::stat((root / "usr/bin/program").c_str(), &in) == 0);
    REQUIRE(::stat((test.root() / "usr/bin/program").c_str(), &out) == 0);
    CHECK(out.st_nlink == 2);
    CHECK(out.st_mtim.tv_sec == in.st_mtim.tv_sec);
    CHECK(out.st_mtim.tv_nsec == in.st_mtim.tv_nsec);
}

TEST_CASE("the same directory gives the same bytes, however they are taken") {
    TemporaryDirectory directory;
    write(directory.path() / "etc/a", std::string(300'000, 'a'));
    write(directory.path() / "etc/b", "b");
    std::string pushed, pulled;
    REQUIRE(image::write_archive(directory.path(), [&](std::span<const char> bytes) -> Status {
        pushed.append(bytes.data(), bytes.size());
        return {};
    }));
    auto source = archive_of(directory.path());
    char buffer[777];
    for (;;) {
        auto count = source(buffer);
        REQUIRE(count);
        if (*count == 0) break;
        pulled.append(buffer, *count);
    }
    CHECK(pulled == pushed);
    CHECK(pulled.size() % 512 == 0);
}

TEST_CASE("sockets, devices and mounts are left out") {
    TemporaryDirectory directory;
    fs::path root = directory.path() / "root";
    write(root / "etc/a", "x");
    fs::create_directories(root / "mnt/other");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string socket_path = (root / "etc/socket").string();
    REQUIRE(socket_path.size() < sizeof address.sun_path);
    socket_path.copy(address.sun_path, socket_path.size());
    int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ScopeExit close_listener([&] { ::close(listener); });
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    bool device = ::mknod((root / "etc/null").c_str(), S_IFCHR | 0666, 0x103) == 0;
    fs::path mounted = root / "mnt/other";
    bool mount = ::mount("none", mounted.c_str(), "tmpfs", 0, "size=1m") == 0;
    ScopeExit unmount([&] {
        if (mount) ::umount2(mounted.c_str(), MNT_DETACH);
    });
    write(mounted / "inside", "x");

    TestStore test;
    REQUIRE(test.store->import_archive("test", archive_of(root)));
    fs::path copy = test.root();
    CHECK(fs::exists(copy / "etc/a"));
    CHECK_FALSE(fs::exists(fs::symlink_status(copy / "etc/socket")));
    CHECK(fs::is_directory(copy / "mnt/other"));
    if (mount) CHECK_FALSE(fs::exists(copy / "mnt/other/inside"));
    if (device) CHECK_FALSE(fs::exists(fs::symlink_status(copy / "etc/null")));
}

TEST_CASE("an OCI layout in a directory is imported as an image") {
    TemporaryDirectory directory;
    OciImage image({tar({TarEntry("etc/a", "x")})});
    write(directory.path() / "oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    write(directory.path() / "index.json", image.index);
    for (const auto& [hex, content] : image.blobs) {
        write(directory.path() / "blobs/sha256" / hex, content);
    }
    TestStore test;
    auto info = test.store->import_archive("test", archive_of(directory.path()));
    REQUIRE(info);
    CHECK(info->digest == image.manifest_digest());
}

TEST_CASE("what is no directory is refused, a sink's error ends the stream") {
    TemporaryDirectory directory;
    write(directory.path() / "file", "x");
    CHECK(image::DirectoryArchive::open(directory.path() / "absent").error().code() ==
          ErrorCode::not_found);
    CHECK(image::DirectoryArchive::open(directory.path() / "file").error().code() ==
          ErrorCode::invalid_argument);
    int calls = 0;
    auto status = image::write_archive(directory.path(), [&](std::span<const char>) -> Status {
        ++calls;
        return Error(ErrorCode::cancelled, "enough");
    });
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == ErrorCode::cancelled);
    CHECK(calls == 1);
}
