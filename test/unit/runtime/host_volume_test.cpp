#include "runtime/host_volume.hpp"

#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::runtime;

namespace {

model::Volume host_volume(std::string path, std::string sub_path = "") {
    model::Volume volume;
    volume.name = "data";
    volume.mount_path = "/data";
    volume.sub_path = std::move(sub_path);
    model::HostVolume host;
    host.path = std::move(path);
    volume.backend = host;
    return volume;
}

template <class T>
std::string wire_of(const Result<T>& result) {
    return result ? std::string("none") : result.error().wire();
}

}  // namespace

TEST_CASE("a host path is absolute, plain and below an allowed one", "[runtime][volume]") {
    AllowedHostPaths allowed{"/srv/data/", "/mnt"};
    for (const char* good : {"/srv/data", "/srv/data/a", "/srv/data/..a", "/mnt/b.c"}) {
        CHECK(check_host_volume(host_volume(good), allowed));
    }
    for (const char* bad :
         {"", "relative", "/srv/data/", "/srv//data", "/srv/data/../x", "/srv/..", "C:\\x", "/"}) {
        INFO(bad);
        CHECK(wire_of(check_host_volume(host_volume(bad), allowed)) == "VOLUME::INVALID_HOST_PATH");
    }
    for (const char* outside : {"/srv", "/srv/database", "/etc"}) {
        INFO(outside);
        CHECK(wire_of(check_host_volume(host_volume(outside), allowed)) ==
              "VOLUME::HOST_PATH_NOT_ALLOWED");
    }
    CHECK(wire_of(check_host_volume(host_volume("/srv/data"), {})) ==
          "VOLUME::HOST_PATH_NOT_ALLOWED");
    for (const char* bad : {"/abs", "..", "a/../..", "a/.."}) {
        INFO(bad);
        CHECK(wire_of(check_host_volume(host_volume("/mnt", bad), allowed)) ==
              "VOLUME::INVALID_SUB_PATH");
    }
    CHECK(check_host_volume(host_volume("/mnt", "a/b"), allowed));
}

TEST_CASE("a path is within a directory only by whole components", "[runtime][volume]") {
    CHECK(is_within("/a", "/a"));
    CHECK(is_within("/a/b", "/a"));
    CHECK(is_within("/a/b", "/a/"));
    CHECK(is_within("/a", "/"));
    CHECK_FALSE(is_within("/ab", "/a"));
    CHECK_FALSE(is_within("/", "/a"));
    CHECK_FALSE(is_within("/a", ""));
    CHECK_FALSE(is_within("/a", "a"));
}

TEST_CASE("a missing host directory is made, a file is taken as it is", "[runtime][volume]") {
    test_support::ScratchDirectory scratch;
    std::string root = std::filesystem::canonical(scratch.path).string();
    auto made = resolve_host_volume(host_volume(root + "/a/b", "c/./d"), {root});
    REQUIRE(made);
    CHECK(*made == root + "/a/b/c/d");
    CHECK(std::filesystem::is_directory(*made));

    std::ofstream(root + "/file") << "x";
    auto file = resolve_host_volume(host_volume(root + "/file"), {root});
    REQUIRE(file);
    CHECK(*file == root + "/file");
    CHECK(wire_of(resolve_host_volume(host_volume(root + "/file/below"), {root})) ==
          "VOLUME::HOST_PATH_CREATE_FAILED");
    REQUIRE(::mkfifo((root + "/pipe").c_str(), 0600) == 0);
    CHECK(wire_of(resolve_host_volume(host_volume(root + "/pipe"), {root})) ==
          "VOLUME::INVALID_HOST_PATH");
}

TEST_CASE("links lead neither out of what is allowed nor out of the volume", "[runtime][volume]") {
    test_support::ScratchDirectory scratch;
    std::string root = std::filesystem::canonical(scratch.path).string();
    for (const char* name : {"/allowed/mine", "/allowed/other", "/outside"})
        std::filesystem::create_directories(root + name);
    std::filesystem::create_symlink(root + "/outside", root + "/allowed/escape");
    std::filesystem::create_symlink(root + "/allowed/other", root + "/allowed/mine/other");
    std::filesystem::create_symlink(root + "/allowed/other", root + "/allowed/alias");
    std::filesystem::create_symlink(root + "/allowed", root + "/link");
    AllowedHostPaths allowed{root + "/allowed"};

    CHECK(wire_of(resolve_host_volume(host_volume(root + "/allowed/escape"), allowed)) ==
          "VOLUME::HOST_PATH_NOT_ALLOWED");
    CHECK(wire_of(resolve_host_volume(host_volume(root + "/allowed/escape/new"), allowed)) ==
          "VOLUME::HOST_PATH_NOT_ALLOWED");
    CHECK_FALSE(std::filesystem::exists(root + "/outside/new"));
    CHECK(wire_of(resolve_host_volume(host_volume(root + "/allowed/mine", "other"), allowed)) ==
          "VOLUME::INVALID_SUB_PATH");

    auto alias = resolve_host_volume(host_volume(root + "/allowed/alias"), allowed);
    REQUIRE(alias);
    CHECK(*alias == root + "/allowed/other");
    // The allowed entry itself may be a link.
    auto through = resolve_host_volume(host_volume(root + "/link/mine"), {root + "/link"});
    REQUIRE(through);
    CHECK(*through == root + "/allowed/mine");
}

TEST_CASE("places where set-id programs give rights to users of the host", "[runtime][volume]") {
    // Everybody may go there, and programs such as passwd have their rights.
    CHECK(lends_rights("/usr/bin"));
    // The kernel heeds no such bits there.
    std::ifstream mounts("/proc/self/mounts");
    std::string device, place, type, options;
    for (std::string rest; mounts >> device >> place >> type >> options;) {
        std::getline(mounts, rest);
        if (type != "tmpfs" || options.find("nosuid") == std::string::npos) continue;
        INFO(place);
        CHECK_FALSE(lends_rights(place));
    }
    const test_support::ScratchDirectory scratch;
    const std::filesystem::path inner = scratch.path / "shut" / "inner";
    std::filesystem::create_directories(inner);
    std::filesystem::permissions(scratch.path / "shut", std::filesystem::perms::owner_all);
    CHECK_FALSE(lends_rights(inner.string()));
}
