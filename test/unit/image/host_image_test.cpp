#include "image/host_image.hpp"

#include "archives.hpp"
#include "image/host_files.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::image::test;
using opensandbox::image::HostImage;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& content, unsigned mode = 0644) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
}

std::string content_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A small usr-merged host with secrets in it.
struct FakeHost {
    FakeHost() {
        for (const char* name : {"usr/bin", "usr/lib", "usr/sbin", "root", "home/person"}) {
            fs::create_directories(root / name);
        }
        fs::create_symlink("usr/bin", root / "bin");
        fs::create_symlink("/usr/lib", root / "lib");
        fs::create_symlink("usr/sbin", root / "sbin");
        write(root / "usr/bin/bash", "#!", 0755);
        write(root / "etc/ld.so.conf", "include x\n");
        write(root / "etc/passwd", "person:x:1000:1000::/home/person:/bin/sh\n");
        write(root / "etc/shadow", "person:$6$hash:1::::::\n", 0640);
        write(root / "etc/machine-id", "0123\n");
        write(root / "etc/fstab", "x");
        write(root / "etc/ssh/ssh_host_key", "x", 0600);
        write(root / "etc/docker/daemon.json", "{}");
        write(root / "etc/ssl/private/key.pem", "x");
        write(root / "etc/ssl/certs/ca.pem", "-----BEGIN CERTIFICATE-----\n");
        write(root / "etc/ssl/certs/mixed.pem", "-----BEGIN RSA PRIVATE KEY-----\n");
        write(root / "etc/security/opasswd", "x", 0600);
        write(root / "etc/security/limits.conf", "limits");
        write(root / "etc/apt/auth.conf", "machine x login y password z");
        write(root / "etc/apt/sources.list", "deb https://me:secret@example.com/ x main\n");
        write(root / "etc/apt/sources.list.d/plain.list", "deb https://example.com/ x main\n");
        write(root / "etc/python3.11/sitecustomize.py", "pass\n");
        write(root / "var/lib/dpkg/status", "Package: x\n");
        write(root / "home/person/notes", "x");
        fs::create_symlink("/usr/share/zoneinfo/Etc/UTC", root / "etc/localtime");
        fs::create_directories(root / "images/staging");
        fs::create_directories(root / "images/host");
    }
    [[nodiscard]] HostImage image() const { return HostImage(root / "images", root); }

    TemporaryDirectory directory;
    fs::path root = directory.path();
};

fs::path skeleton_of(HostImage& image) {
    auto rootfs = image.rootfs();
    REQUIRE(rootfs);
    REQUIRE(rootfs->layers.size() == 1);
    return rootfs->layers[0];
}

}  // namespace

TEST_CASE("the host image has a skeleton root and the host's usr") {
    FakeHost host;
    HostImage image = host.image();
    auto rootfs = image.rootfs();
    REQUIRE(rootfs);
    CHECK(rootfs->usr == "/usr");
    fs::path root = rootfs->layers[0];
    CHECK(fs::read_symlink(root / "bin") == "usr/bin");
    CHECK(fs::read_symlink(root / "lib") == "usr/lib");
    CHECK_FALSE(fs::exists(fs::symlink_status(root / "lib64")));
    CHECK(fs::status(root / "root").permissions() == fs::perms::owner_all);
    struct stat tmp{};
    REQUIRE(::stat((root / "tmp").c_str(), &tmp) == 0);
    CHECK((tmp.st_mode & 07777) == 01777);
    for (const char* name : {"proc", "sys", "dev", "run", "usr", "mnt", "opt", "srv", "var/tmp"}) {
        INFO(name);
        CHECK(fs::is_directory(root / name));
    }
    CHECK(fs::is_empty(root / "usr"));
    CHECK(content_of(root / "etc/ld.so.conf") == "include x\n");
    CHECK(content_of(root / "etc/python3.11/sitecustomize.py") == "pass\n");
    CHECK(content_of(root / "etc/apt/sources.list.d/plain.list") ==
          "deb https://example.com/ x main\n");
    CHECK(fs::read_symlink(root / "etc/localtime") == "/usr/share/zoneinfo/Etc/UTC");
    CHECK(content_of(root / "var/lib/dpkg/status") == "Package: x\n");
}

TEST_CASE("nothing secret of the host is in the host image") {
    FakeHost host;
    HostImage image = host.image();
    fs::path root = skeleton_of(image);
    for (const char* name :
         {"etc/machine-id", "etc/fstab", "etc/ssh", "etc/docker", "etc/ssl/private",
          "etc/ssl/certs/mixed.pem", "etc/security/opasswd", "etc/apt/auth.conf",
          "etc/apt/sources.list", "home/person", "etc/hostname", "etc/hosts", "etc/resolv.conf"}) {
        INFO(name);
        CHECK_FALSE(fs::exists(fs::symlink_status(root / name)));
    }
    CHECK(fs::is_empty(root / "root"));
    CHECK(content_of(root / "etc/ssl/certs/ca.pem") == "-----BEGIN CERTIFICATE-----\n");
    CHECK(content_of(root / "etc/passwd").find("person") == std::string::npos);
    CHECK(content_of(root / "etc/shadow").find("hash") == std::string::npos);
}

TEST_CASE("the accounts of the host image are the standard ones and a user") {
    FakeHost host;
    HostImage image = host.image();
    fs::path root = skeleton_of(image);
    std::string passwd = content_of(root / "etc/passwd"), group = content_of(root / "etc/group");
    CHECK_THAT(passwd, Catch::StartsWith("root:x:0:0:root:/root:/bin/bash\n"));
    CHECK_THAT(passwd, Catch::Contains("\nsandbox:x:1000:1000:"));
    CHECK_THAT(passwd, Catch::Contains("\nnobody:x:65534:65534:"));
    CHECK_THAT(group, Catch::Contains("\ntty:x:5:\n") && Catch::Contains("\nsandbox:x:1000:\n"));
    struct stat shadow{};
    REQUIRE(::stat((root / "etc/shadow").c_str(), &shadow) == 0);
    CHECK((shadow.st_mode & 07777) == 0640);
    CHECK(content_of(root / "etc/shadow").find("root:*:") == 0);
}

TEST_CASE("the host image is made once and keeps its digest") {
    FakeHost host;
    HostImage first = host.image();
    CHECK(first.describe().digest.empty());
    auto rootfs = first.rootfs();
    REQUIRE(rootfs);
    auto before = snapshot(host.root);
    HostImage again = host.image();
    CHECK(again.describe().digest == rootfs->digest);
    CHECK(again.rootfs()->digest == rootfs->digest);
    CHECK(snapshot(host.root) == before);
    CHECK(again.describe().built_in);
    CHECK(again.describe().size > 0);
}

TEST_CASE("a touched file keeps the skeleton, a changed one makes another beside it") {
    FakeHost host;
    HostImage first = host.image();
    fs::path former = skeleton_of(first);
    std::string digest = first.describe().digest;

    write(host.root / "etc/ld.so.conf", "include x\n");
    HostImage touched = host.image();
    CHECK(skeleton_of(touched) == former);
    CHECK(touched.describe().digest == digest);

    write(host.root / "etc/ld.so.conf", "include y\n");
    HostImage changed = host.image();
    fs::path present = skeleton_of(changed);
    CHECK(present != former);
    CHECK(content_of(present / "etc/ld.so.conf") == "include y\n");
    CHECK(content_of(former / "etc/ld.so.conf") == "include x\n");

    changed.prune([&](const std::string& used) { return used == digest; });
    CHECK(fs::exists(former));
    changed.prune([](const std::string&) { return false; });
    CHECK_FALSE(fs::exists(former));
    CHECK(fs::exists(present / "etc/ld.so.conf"));
}

TEST_CASE("a survey tells what could change the skeleton and nothing else") {
    FakeHost host;
    write(host.root / "etc/alternatives/README", "x");
    fs::create_symlink("/usr/bin/one", host.root / "etc/alternatives/program");
    auto holds = [&](const std::function<void()>& change) {
        auto survey = image::survey_host(host.root);
        REQUIRE(survey);
        CHECK(survey->still_holds(host.root));
        change();
        bool same = image::survey_host(host.root)->fingerprint() == survey->fingerprint();
        bool held = survey->still_holds(host.root);
        CHECK((same || !held));
        return held;
    };
    CHECK(holds([&] { write(host.root / "home/person/notes", "other"); }));
    CHECK(holds([&] { write(host.root / "etc/ssh/ssh_host_key", "other"); }));
    CHECK_FALSE(holds([&] { write(host.root / "etc/ld.so.conf", "other"); }));
    CHECK_FALSE(holds([&] { write(host.root / "etc/security/limits.conf", "other"); }));
    CHECK_FALSE(holds([&] { write(host.root / "etc/lsb-release", "new"); }));
    CHECK_FALSE(holds([&] { write(host.root / "etc/security/new.conf", "new"); }));
    CHECK_FALSE(holds([&] { write(host.root / "var/lib/dpkg/status", "other"); }));
    CHECK_FALSE(holds([&] {
        fs::remove(host.root / "etc/alternatives/program");
        fs::create_symlink("/usr/bin/two", host.root / "etc/alternatives/program");
    }));
    CHECK_FALSE(holds([&] {
        fs::remove(host.root / "etc/localtime");
        fs::create_symlink("/usr/share/zoneinfo/Europe/Oslo", host.root / "etc/localtime");
    }));
}

TEST_CASE("a skeleton of another boot is made again in its place") {
    FakeHost host;
    HostImage first = host.image();
    fs::path root = skeleton_of(first);
    std::string about = content_of(root.parent_path() / "about.json");
    std::size_t at = about.find("\"boot\":\"");
    REQUIRE(at != std::string::npos);
    about.replace(at + 8, 8, "00000000");
    write(root.parent_path() / "about.json", about);
    write(root / "etc/ld.so.conf", "");  // what a power cut leaves
    HostImage again = host.image();
    CHECK(skeleton_of(again) == root);
    CHECK(content_of(root / "etc/ld.so.conf") == "include x\n");
}

TEST_CASE("a host that is not usr-merged is refused with the reason") {
    FakeHost host;
    fs::remove(host.root / "sbin");
    fs::create_directory(host.root / "sbin");
    HostImage image = host.image();
    auto result = image.rootfs();
    REQUIRE_FALSE(result);
    CHECK(result.error().code() == ErrorCode::unsupported);
    CHECK_THAT(result.error().message(), Catch::Contains("/sbin"));
    CHECK(fs::is_empty(host.root / "images/host"));
    CHECK(fs::is_empty(host.root / "images/staging"));
}

TEST_CASE("content with keys or passwords is not harmless") {
    using image::is_harmless;
    CHECK(is_harmless("http://example.com/a@b and mail me@example.com"));
    CHECK(is_harmless(""));
    CHECK_FALSE(is_harmless("proxy http://user:secret@proxy:8080/"));
    CHECK_FALSE(is_harmless("a://b/ http://token@example.com"));
    CHECK_FALSE(is_harmless("-----BEGIN OPENSSH PRIVATE KEY-----"));
}

TEST_CASE("the store resolves host on this machine") {
    TestStore test;
    auto rootfs = test.store->resolve("host");
    if (!rootfs) {
        CHECK(rootfs.error().code() == ErrorCode::unsupported);  // not usr-merged
        return;
    }
    CHECK(fs::exists(rootfs->layers[0] / "etc/passwd"));
    CHECK(test.store->list()->front().digest == rootfs->digest);
    CHECK(test.store->resolve("host:latest")->digest == rootfs->digest);
}
