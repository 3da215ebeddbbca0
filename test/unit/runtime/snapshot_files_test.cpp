#include "runtime/native/spawner/snapshots/snapshot_files.hpp"

#include "base/identifier.hpp"
#include "base/remove_tree.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/layer_copy.hpp"
#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <array>
#include <fstream>
#include <stdlib.h>
#include <string>

using namespace opensandbox;
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace fs = std::filesystem;

namespace {

struct Directory {
    Directory() {
        char name[] = "/var/tmp/osb-test-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Directory() { (void)remove_tree(path); }
    fs::path path;
};

struct stat status_of(const fs::path& path) {
    struct stat info{};
    REQUIRE(::lstat(path.c_str(), &info) == 0);
    return info;
}

std::string attribute(const fs::path& path, const char* name) {
    std::array<char, 64> value{};
    const ssize_t size = ::lgetxattr(path.c_str(), name, value.data(), value.size());
    return size < 0 ? "none" : std::string(value.data(), static_cast<std::size_t>(size));
}

SnapshotRecord sample() {
    SnapshotRecord record;
    record.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    record.created_at = Timestamp(std::chrono::microseconds(1'700'000'000'123'456));
    record.boot = boot_id();
    record.layers = {record.id, "7f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11"};
    record.image.reference = "python:3.11";
    record.image.digest = "sha256:abc";
    record.image.layers = {"/images/b", "/images/a"};
    record.image.config.env = {{"B", "2"}, {"A", "1\n\""}};
    record.image.config.user = "app";
    record.image.config.working_directory = "/srv";
    return record;
}

}  // namespace

TEST_CASE("a copied layer is like the layer", "[runtime][layer]") {
    Directory directory;
    const fs::path from = directory.path / "from";
    const fs::path to = directory.path / "to";
    fs::create_directories(from / "dir" / "deep");
    std::ofstream(from / "dir" / "file") << "text";
    fs::create_hard_link(from / "dir" / "file", from / "other");
    fs::create_symlink("nowhere", from / "link");
    REQUIRE(::mkfifo((from / "pipe").c_str(), 0600) == 0);
    REQUIRE(::mknod((from / "gone").c_str(), S_IFCHR, makedev(0, 0)) == 0);
    REQUIRE(::chown((from / "dir" / "file").c_str(), 33, 44) == 0);
    REQUIRE(::chmod((from / "dir" / "file").c_str(), 04751) == 0);
    REQUIRE(::lchown((from / "link").c_str(), 5, 6) == 0);
    std::ofstream(from / "sparse") << "x";
    fs::resize_file(from / "sparse", 1 << 30);
    const auto set = [](const fs::path& path, const char* name, std::string_view value) {
        REQUIRE(::lsetxattr(path.c_str(), name, value.data(), value.size(), 0) == 0);
    };
    set(from / "dir", "trusted.overlay.opaque", "y");
    set(from / "dir", "trusted.overlay.origin", "here");
    set(from / "dir" / "file", "user.note", "mine");
    const std::array<timespec, 2> times{{{1000, 1}, {2000, 2}}};
    REQUIRE(::utimensat(AT_FDCWD, (from / "dir").c_str(), times.data(), 0) == 0);

    REQUIRE(succeeded(copy_layer(from, to)));
    CHECK(status_of(to / "dir" / "file").st_ino == status_of(to / "other").st_ino);
    CHECK(status_of(to / "dir" / "file").st_uid == 33);
    CHECK(status_of(to / "dir" / "file").st_gid == 44);
    CHECK((status_of(to / "dir" / "file").st_mode & 07777) == 04751);
    CHECK(fs::read_symlink(to / "link") == "nowhere");
    CHECK(status_of(to / "link").st_uid == 5);
    CHECK(S_ISFIFO(status_of(to / "pipe").st_mode));
    CHECK(S_ISCHR(status_of(to / "gone").st_mode));
    CHECK(status_of(to / "gone").st_rdev == makedev(0, 0));
    CHECK(status_of(to / "sparse").st_size == 1 << 30);
    CHECK(status_of(to / "sparse").st_blocks < 100);
    CHECK(attribute(to / "dir", "trusted.overlay.opaque") == "y");
    CHECK(attribute(to / "dir", "trusted.overlay.origin") == "none");
    CHECK(attribute(to / "dir" / "file", "user.note") == "mine");
    CHECK(status_of(to / "dir").st_mtim.tv_sec == 2000);
    CHECK(status_of(to / "dir").st_mtim.tv_nsec == 2);
    std::ifstream copied(to / "dir" / "file");
    std::string text;
    copied >> text;
    CHECK(text == "text");
}

TEST_CASE("a layer is copied to where nothing is only", "[runtime][layer]") {
    Directory directory;
    fs::create_directories(directory.path / "from");
    fs::create_directories(directory.path / "to");
    CHECK(copy_layer(directory.path / "from", directory.path / "to").error().code() ==
          ErrorCode::conflict);
    CHECK(copy_layer(directory.path / "none", directory.path / "x").error().code() ==
          ErrorCode::not_found);
}

TEST_CASE("a layer that never changes is linked, without its sockets", "[runtime][layer]") {
    Directory directory;
    const fs::path from = directory.path / "from", to = directory.path / "to";
    fs::create_directories(from / "d");
    std::ofstream(from / "d/file") << "text";
    fs::create_symlink("file", from / "d/link");
    REQUIRE(::mknod((from / "socket").c_str(), S_IFSOCK | 0600, 0) == 0);
    REQUIRE(::mknod((from / "gone").c_str(), S_IFCHR, makedev(0, 0)) == 0);
    REQUIRE(succeeded(copy_layer(from, to, LayerFiles::linked)));
    CHECK(status_of(to / "d/file").st_ino == status_of(from / "d/file").st_ino);
    CHECK(fs::read_symlink(to / "d/link") == "file");
    CHECK(S_ISCHR(status_of(to / "gone").st_mode));
    CHECK_FALSE(fs::exists(fs::symlink_status(to / "socket")));
    REQUIRE(succeeded(remove_tree(from)));
    std::string text;
    std::ifstream(to / "d/file") >> text;
    CHECK(text == "text");
}

TEST_CASE("a snapshot's record comes back as it was written", "[runtime][snapshot]") {
    const auto back = parse_snapshot(format_snapshot(sample()));
    REQUIRE(succeeded(back));
    CHECK(back->id == sample().id);
    CHECK(back->created_at == sample().created_at);
    CHECK(back->boot == sample().boot);
    CHECK(back->layers == sample().layers);
    CHECK(back->image.reference == "python:3.11");
    CHECK(back->image.digest == "sha256:abc");
    CHECK(back->image.layers == sample().image.layers);
    CHECK(back->image.config.env == sample().image.config.env);
    CHECK(back->image.config.user == "app");
    CHECK(back->image.config.working_directory == "/srv");
}

TEST_CASE("what copies start from says what it is a copy of", "[runtime][fork]") {
    SnapshotRecord record = sample();
    CHECK_FALSE(parse_snapshot(format_snapshot(record))->source);
    record.source.emplace();
    record.source->plan.image = record.image;
    record.source->plan.environment = {{"A", "1"}};
    record.source->plan.limits.pids = 7;
    auto back = parse_snapshot(format_snapshot(record));
    REQUIRE(back.has_value());
    REQUIRE(back->source);
    CHECK(back->source->plan.environment == record.source->plan.environment);
    CHECK(back->source->plan.limits.pids == 7);
}

TEST_CASE("a snapshot remembers what guarded its source", "[runtime][snapshot]") {
    SnapshotRecord record = sample();
    CHECK_FALSE(parse_snapshot(format_snapshot(record))->egress.wanted);
    record.egress.wanted = true;
    record.egress.policy = R"({"defaultAction":"deny"})";
    record.egress.environment = {{"OPENSANDBOX_EGRESS_A", "1"}};
    record.egress.token = "secret";
    const std::string text = format_snapshot(record);
    CHECK(text.find("secret") == std::string::npos);
    auto back = parse_snapshot(text);
    REQUIRE(back.has_value());
    CHECK(back->egress.wanted);
    CHECK(back->egress.policy == record.egress.policy);
    CHECK(back->egress.environment == record.egress.environment);
}

TEST_CASE("what is no snapshot's record is refused", "[runtime][snapshot]") {
    for (const char* text : {"", "[]", "{}", "{\"id\":1}", "nonsense"})
        CHECK_FALSE(succeeded(parse_snapshot(text)));
    SnapshotRecord record = sample();
    record.layers = {"../../etc"};
    CHECK_FALSE(succeeded(parse_snapshot(format_snapshot(record))));
    record = sample();
    record.layers.clear();
    CHECK_FALSE(succeeded(parse_snapshot(format_snapshot(record))));
    record = sample();
    record.id = "../x";
    CHECK_FALSE(succeeded(parse_snapshot(format_snapshot(record))));
}

TEST_CASE("snapshots of another boot count only once they are on the disk", "[runtime][snapshot]") {
    Directory directory;
    const SnapshotFiles files(directory.path);
    REQUIRE(succeeded(files.prepare()));
    fs::create_directories(directory.path / "slot" / "u");
    SnapshotRecord record = sample();
    record.layers = {record.id};
    REQUIRE(succeeded(files.make(record, directory.path / "slot")));
    CHECK_FALSE(files.synced(record.id));
    files.sync(record.id);
    CHECK(files.synced(record.id));
    CHECK(files.make(record, directory.path / "slot").error().code() == ErrorCode::conflict);
    auto all = files.read_all();
    REQUIRE(succeeded(all));
    CHECK(all->size() == 1);
    REQUIRE(succeeded(files.remove_record(record.id)));
    CHECK(files.read(record.id).error().code() == ErrorCode::not_found);
    CHECK(files.layers() == std::set<std::string>{record.id});
    REQUIRE(succeeded(files.discard_layer(record.id)));
    REQUIRE(succeeded(files.remove_gone()));
    CHECK(files.layers().empty());
}

TEST_CASE("a killed process leaves nothing of a snapshot, wherever it was", "[runtime][snapshot]") {
    Directory directory;
    const SnapshotFiles files(directory.path);
    REQUIRE(succeeded(files.prepare()));
    const std::string id = sample().id;
    const auto interrupt = [&] {
        fs::create_directories(files.staging(id) / "u" / "half");
        std::ofstream(files.staging(id + ".json")) << "{\"id\":";
    };
    const auto nothing_left = [&] {
        REQUIRE(succeeded(files.remove_gone()));
        return fs::is_empty(directory.path / "snapshots" / "staging") && !files.has_gone();
    };
    interrupt();
    REQUIRE(succeeded(files.discard_staged(id)));
    CHECK(nothing_left());
    interrupt();
    REQUIRE(succeeded(files.discard_staged()));
    CHECK(nothing_left());
}
