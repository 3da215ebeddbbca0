#include "base/scope_exit.hpp"
#include "runtime/bucket_command.hpp"
#include "runtime/bucket_mounts.hpp"
#include "runtime/host_command.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::runtime;

namespace {

model::Volume bucket_volume(std::string version = "2.0") {
    model::Volume volume;
    volume.name = "data";
    volume.mount_path = "/data";
    model::BucketVolume bucket;
    bucket.bucket = "my-bucket";
    bucket.endpoint = "oss.example.com";
    bucket.version = std::move(version);
    bucket.access_key_id = "key";
    bucket.access_key_secret = "secret";
    volume.backend = bucket;
    return volume;
}

model::BucketVolume& bucket_of(model::Volume& volume) {
    return std::get<model::BucketVolume>(volume.backend);
}

template <class T>
std::string wire_of(const Result<T>& result) {
    return result ? std::string("none") : result.error().wire();
}

}  // namespace

TEST_CASE("a host command tells how it failed", "[runtime][command]") {
    auto failed = run_host_command({"sh", "-c", "echo first; echo why >&2; exit 3"},
                                   std::chrono::seconds(20));
    REQUIRE_FALSE(failed);
    CHECK(failed.error().message().find("exit code 3: first why") != std::string::npos);
    auto slow = run_host_command({"sleep", "60"}, std::chrono::milliseconds(50));
    REQUIRE_FALSE(slow);
    CHECK(slow.error().code() == ErrorCode::timeout);
    auto missing = run_host_command({"no-such-program-here"}, std::chrono::seconds(1));
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code() == ErrorCode::not_found);
    // What stays in the background holds its output open.
    CHECK(run_host_command({"sh", "-c", "sleep 3 & exit 0"}, std::chrono::seconds(2)));
}

TEST_CASE("buckets are mounted by the tool of their version", "[runtime][bucket]") {
    model::Volume volume = bucket_volume("1.0");
    volume.sub_path = "a/b/";
    bucket_of(volume).options = {"allow_other", "umask=0022"};
    REQUIRE(check_bucket_volume(volume));
    CHECK(bucket_path("/mnt/ossfs", volume) == "/mnt/ossfs/my-bucket/a/b");
    BucketCommand command = bucket_command(volume, "/m");
    CHECK(command.argv == std::vector<std::string>{"ossfs", "my-bucket:/a/b", "/m", "-o",
                                                   "url=https://oss.example.com", "-o",
                                                   "passwd_file={secret}", "-o", "allow_other",
                                                   "-o", "umask=0022"});
    CHECK(command.secret == "my-bucket:key:secret\n");

    volume = bucket_volume();
    volume.sub_path = "a";
    bucket_of(volume).endpoint = "http://oss.example.com";
    bucket_of(volume).options = {"ro=true"};
    command = bucket_command(volume, "/m");
    CHECK(command.argv == std::vector<std::string>{"ossfs2", "mount", "/m", "-c", "{secret}"});
    CHECK(command.secret ==
          "--oss_endpoint=http://oss.example.com\n--oss_bucket=my-bucket\n"
          "--oss_access_key_id=key\n--oss_access_key_secret=secret\n"
          "--oss_bucket_prefix=a/\n--ro=true\n");
}

TEST_CASE("what could be taken for something else is no part of a bucket", "[runtime][bucket]") {
    auto with = [](auto change) {
        model::Volume volume = bucket_volume();
        change(volume);
        return wire_of(check_bucket_volume(volume));
    };
    for (const char* name : {"ab", "-abc", "abc-", "Abc", "a_bc", "a.bc", ""}) {
        INFO(name);
        CHECK(with([&](auto& v) { bucket_of(v).bucket = name; }) == "VOLUME::INVALID_OSSFS_BUCKET");
    }
    for (const char* option : {"", "-o", "a b", "a;b", "$(x)", "a\nb", "a|b"}) {
        INFO(option);
        CHECK(with([&](auto& v) { bucket_of(v).options = {option}; }) ==
              "VOLUME::INVALID_OSSFS_OPTION");
    }
    CHECK(with([](auto& v) { bucket_of(v).endpoint = "a\n--x"; }) ==
          "VOLUME::INVALID_OSSFS_ENDPOINT");
    CHECK(with([](auto& v) { bucket_of(v).endpoint = ""; }) == "VOLUME::INVALID_OSSFS_ENDPOINT");
    CHECK(with([](auto& v) { bucket_of(v).version = "3"; }) == "VOLUME::INVALID_OSSFS_VERSION");
    CHECK(with([](auto& v) { bucket_of(v).access_key_secret = "a\nb"; }) ==
          "VOLUME::INVALID_OSSFS_CREDENTIALS");
    CHECK(with([](auto& v) { v.sub_path = "../x"; }) == "VOLUME::INVALID_SUB_PATH");
    CHECK(with([](auto& v) { v.sub_path = "a\n--x"; }) == "VOLUME::INVALID_SUB_PATH");
}

TEST_CASE("a host command's last words hold no secrets", "[runtime][command]") {
    HostCommandOptions options;
    options.secrets = {"secret", "secretly"};
    auto failed = run_host_command({"sh", "-c", "echo key=secretly key=secret; exit 1"},
                                   std::chrono::seconds(20), options);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().message().find("key=*** key=***") != std::string::npos);
    // Also where only the end of a secret would be shown.
    std::string script = "printf '%0600d' 0 | tr 0 s; exit 1";
    options.secrets = {std::string(600, 's')};
    failed = run_host_command({"sh", "-c", script}, std::chrono::seconds(20), options);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().message().find("sss") == std::string::npos);
}

TEST_CASE("a host command ends when it is told to, with its children", "[runtime][command]") {
    test_support::ScratchDirectory scratch;
    UniqueFd stop(::eventfd(1, EFD_CLOEXEC));
    HostCommandOptions options;
    options.stop = stop.get();
    std::string script = "echo waiting; sleep 60";
    auto stopped = run_host_command({"sh", "-c", script}, std::chrono::seconds(60), options);
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().code() == ErrorCode::cancelled);
    std::string file = (scratch.path / "child").string();
    script = "sleep 61 & echo $! > " + file + "; wait";
    auto late = run_host_command({"sh", "-c", script}, std::chrono::seconds(1));
    REQUIRE_FALSE(late);
    pid_t child = 0;
    std::ifstream(file) >> child;
    REQUIRE(child > 1);
    auto alive = [&] {
        std::string state;
        std::ifstream status("/proc/" + std::to_string(child) + "/stat");
        std::getline(status, state);
        return !state.empty() && state.find(") Z") == std::string::npos;
    };
    for (int round = 0; round < 1000 && alive(); ++round)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK_FALSE(alive());
}

TEST_CASE("options of buckets cannot use the host's files and programs", "[runtime][bucket]") {
    test_support::ScratchDirectory scratch;
    const AllowedHostPaths allowed{scratch.path.string()};
    auto with = [&](const std::string& option) {
        model::Volume volume = bucket_volume();
        bucket_of(volume).options = {option};
        return wire_of(check_bucket_volume(volume, allowed));
    };
    for (const char* option :
         {"passwd_file=/etc/passwd-ossfs", "credential_process=/bin/reboot", "ram_role=admin",
          "ro,credential_process=/bin/reboot", "use_cache=/etc", "use_cache=etc",
          "logfile=/etc/cron.d/x", "log_dir=x", "log-dir=x", "tmpdir=../x", "url=http://other",
          "oss_access_key_id=x", "something=/etc/shadow", "oss_bucket=other"}) {
        INFO(option);
        CHECK(with(option) == "VOLUME::INVALID_OSSFS_OPTION");
    }
    const std::string inside = scratch.path.string();
    for (const std::string& option :
         {std::string("ro=true"), std::string("allow_other,umask=0022"), "use_cache=" + inside,
          "ro,use_cache=" + inside + "/cache", std::string("attr_timeout=60"),
          std::string("http_proxy=http://proxy:3128")}) {
        INFO(option);
        CHECK(with(option) == "none");
    }
    CHECK(with("use_cache=" + inside + "/../x") == "VOLUME::INVALID_OSSFS_OPTION");
    std::filesystem::create_symlink("/etc", scratch.path / "out");
    CHECK(with("use_cache=" + inside + "/out") == "VOLUME::INVALID_OSSFS_OPTION");
}

TEST_CASE("files of a bucket are opened to everybody unless asked otherwise", "[runtime][bucket]") {
    model::Volume volume = bucket_volume("1.0");
    bucket_of(volume).options = {"ro,umask=0022"};
    BucketCommand command = bucket_command(volume, "/m", BucketAccess::everybody);
    std::vector<std::string> tail(command.argv.begin() + 7, command.argv.end());
    CHECK(tail == std::vector<std::string>{"-o", "allow_other", "-o", "uid=0", "-o", "gid=0", "-o",
                                           "ro,umask=0022"});
    volume = bucket_volume();
    command = bucket_command(volume, "/m", BucketAccess::everybody);
    CHECK(command.secret.ends_with("--allow_other=true\n--file_mode=0777\n--dir_mode=0777\n"));
}

namespace {

/// Programs on PATH, before those of the host, and a place for mounts.
class Tools {
  public:
    Tools() : before_(std::getenv("PATH")) {
        ::setenv("PATH", (scratch.path.string() + ":" + before_).c_str(), 1);
        std::filesystem::create_directory(root());
    }
    ~Tools() {
        for (const std::string& left : mounts_below(root()))
            ::umount2(left.c_str(), MNT_DETACH);
        ::setenv("PATH", before_.c_str(), 1);
    }
    void put(const std::string& name, const std::string& script) const {
        const auto path = scratch.path / name;
        std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
        ::chmod(path.c_str(), 0755);
    }
    [[nodiscard]] std::string root() const { return (scratch.path / "root").string(); }
    [[nodiscard]] std::string log() const {
        std::ifstream file(scratch.path / "log");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    [[nodiscard]] BucketPlaces places() const {
        BucketPlaces places;
        places.root = root();
        places.path = [root = root()](const model::Volume& volume, const std::string&) {
            return bucket_path(root, volume);
        };
        return places;
    }
    [[nodiscard]] bool empty() const { return std::filesystem::is_empty(root()); }

    test_support::ScratchDirectory scratch;

  private:
    std::string before_;
};

}  // namespace

TEST_CASE("a bucket is mounted once for all who use it", "[runtime][bucket]") {
    Tools tools;
    tools.put("ossfs2",
              "cat \"$4\" >> \"${0%/*}/log\"; stat -c %a \"$4\" >> \"${0%/*}/log\"; "
              "exec mount -t tmpfs bucket \"$2\"");
    test_support::Loop loop;
    BucketMounts mounts(loop.executor(), tools.places());
    const std::string path = tools.root() + "/my-bucket";
    loop.run([&]() -> Awaitable<void> {
        model::Volume volume = bucket_volume();
        for (std::size_t uses : {1U, 2U}) {
            auto got = co_await mounts.acquire(volume);
            CHECK(got.has_value());
            CHECK(mounts.uses(path) == uses);
        }
        bucket_of(volume).access_key_secret = "other";
        auto other = co_await mounts.acquire(volume);
        CHECK(wire_of(other) == "VOLUME::OSSFS_MOUNT_FAILED");
        for (std::size_t left : {1U, 0U}) {
            auto released = co_await mounts.release(path);
            CHECK(released.has_value());
            CHECK(mounts.uses(path) == left);
            CHECK(mounts_below(tools.root()).size() == left);
        }
        // Once more, which changes nothing.
        auto released = co_await mounts.release(path);
        CHECK(released.has_value());
    });
    // The file of credentials was there for the tool alone, and is gone.
    CHECK(tools.log().find("--oss_access_key_secret=secret") != std::string::npos);
    CHECK(tools.log().ends_with("600\n"));
    CHECK(tools.log().find("600") == tools.log().rfind("600"));
    CHECK(tools.empty());
}

TEST_CASE("those who wait for a tool may end after the buckets", "[runtime][bucket]") {
    Tools tools;
    tools.put("ossfs2", "echo up >> \"${0%/*}/log\"; exec sleep 60");
    test_support::Loop loop;
    auto mounts = std::make_unique<BucketMounts>(loop.executor(), tools.places());
    const model::Volume volume = bucket_volume();
    const auto acquire = [&]() -> Awaitable<void> { (void)co_await mounts->acquire(volume); };
    net::spawn(loop.executor(), acquire(), "one that waits for the tool");
    net::spawn(loop.executor(), acquire(), "one that waits for the other");
    loop.run([&]() -> Awaitable<void> {
        asio::steady_timer timer(loop.executor());
        while (tools.log().empty()) {
            timer.expires_after(std::chrono::milliseconds(5));
            co_await timer.async_wait(asio::use_awaitable);
        }
    });
    mounts.reset();
    CHECK(tools.log() == "up\n");
}

TEST_CASE("nothing is left of a bucket that cannot be mounted", "[runtime][bucket]") {
    Tools tools;
    const model::Volume volume = bucket_volume();
    const std::string path = tools.root() + "/my-bucket";
    BucketMountSettings settings;
    settings.secrets = tools.root();
    std::string expected;
    UniqueFd stop(::eventfd(1, EFD_CLOEXEC));
    SECTION("since its tool fails, and shows what it was given") {
        tools.put("ossfs2", "cat \"$4\"; echo no such bucket >&2; exit 1");
        expected = "no such bucket";
    }
    SECTION("since its tool fails after it has mounted") {
        tools.put("ossfs2", "mount -t tmpfs bucket \"$2\"; echo late >&2; exit 1");
        expected = "late";
    }
    SECTION("since its tool mounts nothing") {
        tools.put("ossfs2", "exit 0");
        expected = "without mounting";
    }
    SECTION("since its tool is not there") {
        expected = "ossfs2 is not installed on this host";
    }
    SECTION("since its tool hangs, and the server ends") {
        tools.put("ossfs2", "sleep 60");
        settings.stop = stop.get();
        expected = "ossfs2: the server ends";
    }
    auto mounted = mount_bucket(volume, path, settings);
    REQUIRE_FALSE(mounted);
    CHECK(mounted.error().wire() == "VOLUME::OSSFS_MOUNT_FAILED");
    CHECK(mounted.error().message().starts_with("volumes.data.ossfs: "));
    CHECK(mounted.error().message().find(expected) != std::string::npos);
    CHECK(mounted.error().message().find("=secret") == std::string::npos);
    CHECK(tools.empty());
}

TEST_CASE("credentials that a killed server left are removed", "[runtime][bucket]") {
    test_support::ScratchDirectory scratch;
    const auto old = scratch.path / ".ossfs-secret-old";
    const auto fresh = scratch.path / ".ossfs-secret-fresh";
    for (const auto& path : {old, fresh})
        std::ofstream(path) << "x";
    std::filesystem::last_write_time(
        old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    sweep_bucket_secrets(scratch.path);
    CHECK_FALSE(std::filesystem::exists(old));
    CHECK(std::filesystem::exists(fresh));
}
