#include "base/remove_tree.hpp"
#include "runtime/native/records/claim_volumes.hpp"
#include "unit/runtime/outcome.hpp"
#include "unit/runtime/spawner_fixture.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <fstream>
#include <thread>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::test;

namespace fs = std::filesystem;

namespace {

model::Volume host(const fs::path& path, const std::string& mount_path) {
    model::Volume volume;
    volume.name = "data";
    volume.mount_path = mount_path;
    volume.backend = model::HostVolume();
    std::get<model::HostVolume>(volume.backend).path = path.string();
    return volume;
}

model::Volume claim(const std::string& name, const std::string& mount_path) {
    model::Volume volume;
    volume.name = "claim";
    volume.mount_path = mount_path;
    model::ClaimVolume backend;
    backend.claim_name = name;
    volume.backend = backend;
    return volume;
}

int code_of(SpawnerFixture& fixture, const SandboxSpec& spec) {
    REQUIRE(succeeded(fixture.create(spec)));
    const Exit exit = fixture.wait_exit(spec.id);
    CHECK(succeeded(fixture.destroy(spec.id)));
    return exit.code;
}

/// Errors of a create that must fail; nothing may be left.
std::string refusal(SpawnerFixture& fixture, const SandboxSpec& spec) {
    const auto made = fixture.create(spec);
    REQUIRE_FALSE(made.has_value());
    CHECK(fixture.list().empty());
    return made.error().wire();
}

}  // namespace

TEST_CASE("a directory of the host is shared with a sandbox", "[runtime][volume]") {
    SpawnerFixture fixture(0);
    const fs::path shared = fixture.allowed() / "shared";
    fs::create_directories(shared / "sub");
    std::ofstream(shared / "given") << "from the host\n";
    std::ofstream(shared / "sub" / "inner") << "x";
    SECTION("for reading and writing, as the owner") {
        SandboxSpec spec = SpawnerFixture::shell(
            "test \"$(cat /mnt/a/b/given)\" = 'from the host' || exit 1; "
            "test $(stat -c %u /mnt/a/b/given) = 0 || exit 2; "
            "echo mine > /mnt/a/b/made && chown 1000 /mnt/a/b/made || exit 3; exit 100");
        spec.volumes = {host(shared, "/mnt/a/b")};
        CHECK(code_of(fixture, spec) == 100);
        struct stat info{};
        REQUIRE(::stat((shared / "made").c_str(), &info) == 0);
        CHECK(info.st_uid == 1000);
    }
    SECTION("for reading only") {
        SandboxSpec spec = SpawnerFixture::shell(
            "test -e /data/given || exit 1; touch /data/x 2>/dev/null && exit 2; exit 100");
        spec.volumes = {host(shared, "/data")};
        spec.volumes[0].read_only = true;
        CHECK(code_of(fixture, spec) == 100);
        CHECK_FALSE(fs::exists(shared / "x"));
    }
    SECTION("in part, over a directory of the image") {
        SandboxSpec spec = SpawnerFixture::shell("test -e /etc/apt/inner && exit 100");
        spec.volumes = {host(shared, "/etc/apt")};
        spec.volumes[0].sub_path = "sub";
        CHECK(code_of(fixture, spec) == 100);
    }
    SECTION("and without its set-id programs") {
        fs::copy_file("/usr/bin/id", shared / "id");
        REQUIRE(::chmod((shared / "id").c_str(), 06755) == 0);
        SandboxSpec spec = SpawnerFixture::shell(
            "grep ' /data ' /proc/self/mounts | "
            "grep nosuid | grep -q nodev && exit 100");
        spec.volumes = {host(shared, "/data")};
        CHECK(code_of(fixture, spec) == 100);
    }
    SECTION("as a single file") {
        SandboxSpec spec = SpawnerFixture::shell(
            "test \"$(cat /opt/one)\" = 'from the host' "
            "&& exit 100");
        spec.volumes = {host(shared / "given", "/opt/one")};
        CHECK(code_of(fixture, spec) == 100);
    }
}

TEST_CASE("what may not be shared is refused", "[runtime][volume]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("true");
    SECTION("outside of what is allowed") {
        spec.volumes = {host("/etc", "/data")};
        CHECK(refusal(fixture, spec) == "VOLUME::HOST_PATH_NOT_ALLOWED");
    }
    SECTION("through a link that leads out") {
        fs::create_symlink("/etc", fixture.allowed() / "out");
        spec.volumes = {host(fixture.allowed() / "out", "/data")};
        CHECK(refusal(fixture, spec).starts_with("VOLUME::"));
    }
    SECTION("over the kernel's files") {
        spec.volumes = {host(fixture.allowed(), "/proc/sys")};
        CHECK(refusal(fixture, spec) == "VOLUME::INVALID_MOUNT_PATH");
    }
    SECTION("a bucket that is none") {
        model::Volume bucket;
        bucket.name = "bucket";
        bucket.mount_path = "/data";
        bucket.backend = model::BucketVolume();
        spec.volumes = {bucket};
        CHECK(refusal(fixture, spec) == "VOLUME::INVALID_OSSFS_BUCKET");
    }
}

TEST_CASE("a link in the image does not lead a mount out of the sandbox", "[runtime][volume]") {
    SpawnerFixture fixture(0);
    const SandboxSpec source =
        SpawnerFixture::shell("ln -s /../../../../etc /away; echo > /ready; sleep 1000");
    REQUIRE(succeeded(fixture.create(source)));
    const auto ready = fixture.slot_of(source.id) / "u" / "ready";
    for (int round = 0; round < 1000 && !fs::exists(ready); ++round)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::string id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    REQUIRE(succeeded(fixture.snapshot(source.id, id)));
    REQUIRE(succeeded(fixture.destroy(source.id)));
    SandboxSpec spec =
        SpawnerFixture::shell("grep -q ' /etc/volume ' /proc/self/mounts && exit 100");
    spec.image.clear();
    spec.snapshot.emplace(id, id);
    spec.volumes = {host(fixture.allowed(), "/away/volume")};
    CHECK(code_of(fixture, spec) == 100);
    CHECK_FALSE(fs::exists("/etc/volume"));
}

TEST_CASE("named volumes outlive sandboxes", "[runtime][volume]") {
    SpawnerFixture fixture(0);
    SandboxSpec writes = SpawnerFixture::shell("echo kept > /data/file && exit 100");
    writes.volumes = {claim("cache", "/data")};
    CHECK(code_of(fixture, writes) == 100);
    SandboxSpec reads = SpawnerFixture::shell("test $(cat /data/file) = kept && exit 100");
    reads.volumes = {claim("cache", "/data")};
    std::get<model::ClaimVolume>(reads.volumes[0].backend).create_if_missing = false;
    // It did not make it: it does not take it away.
    std::get<model::ClaimVolume>(reads.volumes[0].backend).delete_with_sandbox = true;
    CHECK(code_of(fixture, reads) == 100);
    CHECK(fs::exists(fixture.state() / "volumes" / "cache" / "file"));
    SECTION("a part of one can be mounted, but nothing behind a link out of it") {
        SandboxSpec spec = SpawnerFixture::shell("touch /data/made && exit 100");
        spec.volumes = {claim("cache", "/data")};
        spec.volumes[0].sub_path = "a/b";
        CHECK(code_of(fixture, spec) == 100);
        CHECK(fs::exists(fixture.state() / "volumes" / "cache" / "a" / "b" / "made"));
        fs::create_symlink("/etc", fixture.state() / "volumes" / "cache" / "link");
        spec = SpawnerFixture::shell("true");
        spec.volumes = {claim("cache", "/data")};
        spec.volumes[0].sub_path = "link";
        CHECK(refusal(fixture, spec) == "VOLUME::INVALID_SUB_PATH");
    }
}

TEST_CASE("a named volume that is missing is made only when that is wanted", "[runtime][volume]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("true");
    spec.volumes = {claim("none", "/data")};
    std::get<model::ClaimVolume>(spec.volumes[0].backend).create_if_missing = false;
    CHECK(refusal(fixture, spec) == "VOLUME::PVC_NOT_FOUND");
    spec.volumes = {claim("../x", "/data")};
    CHECK(refusal(fixture, spec) == "VOLUME::INVALID_PVC_NAME");
    // A create that fails takes back what it made.
    spec.volumes = {claim("fresh", "/data")};
    spec.entrypoint = {"/no/such/program"};
    CHECK_FALSE(fixture.create(spec).has_value());
    for (int round = 0; round < 1000 && fs::exists(fixture.state() / "volumes" / "fresh"); ++round)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK_FALSE(fs::exists(fixture.state() / "volumes" / "fresh"));
}

TEST_CASE("a named volume goes with the sandbox that made it", "[runtime][volume]") {
    SpawnerFixture fixture(0);
    SandboxSpec spec = SpawnerFixture::shell("echo x > /data/x; sleep 1000");
    spec.volumes = {claim("own", "/data")};
    std::get<model::ClaimVolume>(spec.volumes[0].backend).delete_with_sandbox = true;
    REQUIRE(succeeded(fixture.create(spec)));
    SECTION("also under another spawner") {
        fixture.kill_spawner();
        fixture.start_spawner();
        fixture.connect();
        REQUIRE(succeeded(fixture.destroy(spec.id)));
        CHECK_FALSE(fs::exists(fixture.state() / "volumes" / "own"));
    }
    SECTION("unless another uses it") {
        SandboxSpec other = SpawnerFixture::shell("sleep 1000");
        other.volumes = {claim("own", "/data")};
        REQUIRE(succeeded(fixture.create(other)));
        REQUIRE(succeeded(fixture.destroy(spec.id)));
        CHECK(fs::exists(fixture.state() / "volumes" / "own"));
    }
}
