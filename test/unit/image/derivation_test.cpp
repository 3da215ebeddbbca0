#include "image/derivation.hpp"

#include "archives.hpp"
#include "image/layer_digest.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::image;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

constexpr timespec kOld{1'000'000'000, 5};

void write(const fs::path& file, std::string_view text) {
    std::ofstream(file, std::ios::binary) << text;
}

/// Times that do not depend on when the test runs.
void age(const fs::path& root) {
    const timespec times[2]{kOld, kOld};
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        ::utimensat(AT_FDCWD, entry.path().c_str(), times, AT_SYMLINK_NOFOLLOW);
    }
    ::utimensat(AT_FDCWD, root.c_str(), times, 0);
}

/// A layer with something of every kind in it.
Status make_layer(const fs::path& to) {
    fs::create_directory(to);
    fs::create_directory(to / "etc");
    write(to / "etc/conf", "set");
    fs::create_hard_link(to / "etc/conf", to / "etc/again");
    fs::create_symlink("conf", to / "etc/link");
    ::mkfifo((to / "pipe").c_str(), 0600);
    ::mknod((to / "etc/gone").c_str(), S_IFCHR, makedev(0, 0));
    ::setxattr((to / "etc/conf").c_str(), "user.note", "x", 1, 0);
    age(to);
    return {};
}

LayerSource writes(const std::string& name, const std::string& text) {
    return [=](const fs::path& to) -> Status {
        fs::create_directory(to);
        write(to / name, text);
        age(to);
        return {};
    };
}

std::string hex_of(const fs::path& layer) {
    auto made = identify_layer(layer);
    REQUIRE(made);
    return made->hex;
}

Derivation on(std::string base, std::vector<LayerSource> layers = {}) {
    Derivation wanted;
    wanted.base = std::move(base);
    wanted.layers = std::move(layers);
    return wanted;
}

std::string a_layer(const std::string& content) {
    return tar({directory("etc/"), TarEntry("etc/file", content)});
}

}  // namespace

TEST_CASE("a layer is named by its content") {
    TemporaryDirectory scratch;
    const fs::path one = scratch.path() / "one", two = scratch.path() / "two";
    REQUIRE(make_layer(one));
    REQUIRE(make_layer(two));
    auto made = identify_layer(one);
    REQUIRE(made);
    CHECK(made->hex.size() == 64);
    CHECK(made->record.entries == 6);
    CHECK(made->record.size == 3);
    CHECK_FALSE(made->record.opaque);
    REQUIRE(hex_of(two) == made->hex);
    SECTION("holes are zeroes") {
        write(one / "zero", std::string(3 * 4096 + 7, '\0'));
        write(two / "zero", "");
        fs::resize_file(two / "zero", 3 * 4096 + 7);
        age(one);
        age(two);
        CHECK(hex_of(one) == hex_of(two));
        write(two / "zero", std::string(3 * 4096 + 6, '\0') + "1");
        age(two);
        CHECK(hex_of(one) != hex_of(two));
    }
    SECTION("sockets do not count") {
        ::mknod((two / "socket").c_str(), S_IFSOCK | 0600, 0);
        age(two);
        CHECK(hex_of(two) == made->hex);
    }
    SECTION("a name outside of the layer does not count") {
        fs::create_hard_link(two / "etc/conf", scratch.path() / "outside");
        CHECK(hex_of(two) == made->hex);
    }
    SECTION("every difference counts") {
        const std::vector<std::function<void()>> changes{
            [&] { write(two / "etc/conf", "sex"); },
            [&] { fs::permissions(two / "etc/conf", fs::perms::owner_all); },
            [&] { ::lchown((two / "etc/link").c_str(), 7, 0); },
            [&] { ::lchown((two / "etc/conf").c_str(), 0, 7); },
            [&] { fs::rename(two / "pipe", two / "pipf"); },
            [&] { fs::remove(two / "etc/gone"); },
            [&] { ::setxattr((two / "etc/conf").c_str(), "user.note", "y", 1, 0); },
            [&] { ::setxattr((two / "etc").c_str(), "trusted.overlay.opaque", "y", 1, 0); },
            [&] {
                fs::remove(two / "etc/again");
                write(two / "etc/again", "set");
                ::setxattr((two / "etc/again").c_str(), "user.note", "x", 1, 0);
            },
            [&] {
                fs::remove(two / "etc/link");
                fs::create_symlink("cont", two / "etc/link");
            },
        };
        for (const auto& change : changes) {
            fs::remove_all(two);
            REQUIRE(make_layer(two));
            change();
            age(two);
            CHECK(hex_of(two) != made->hex);
        }
    }
    SECTION("an opaque root is told") {
        ::setxattr(two.c_str(), "trusted.overlay.opaque", "y", 1, 0);
        auto opaque = identify_layer(two);
        REQUIRE(opaque);
        CHECK(opaque->record.opaque);
        CHECK(opaque->hex != made->hex);
    }
}

TEST_CASE("an image is made of another one and of layers on it") {
    TestStore test;
    REQUIRE(test.import(OciImage({a_layer("below")}).archive(), "base"));
    Derivation wanted = on("base", {writes("first", "1"), writes("second", "2")});
    wanted.change.env.emplace();
    wanted.change.env->emplace_back("A", "new");
    wanted.change.env->emplace_back("B", "more");
    wanted.change.cmd = std::vector<std::string>{"run"};
    wanted.change.labels = std::map<std::string, std::string>{{"of", "me"}};
    wanted.change.exposed_ports = std::vector<std::string>{"80/tcp"};
    auto made = test.store->derive("made:1", wanted);
    REQUIRE(made);
    CHECK(made->reference == "made:1");
    auto rootfs = test.store->resolve("made:1");
    REQUIRE(rootfs);
    REQUIRE(rootfs->layers.size() == 3);
    CHECK(fs::exists(rootfs->layers[0] / "second"));
    CHECK(fs::exists(rootfs->layers[1] / "first"));
    CHECK(fs::exists(rootfs->layers[2] / "etc/file"));
    const std::vector<std::pair<std::string, std::string>> env{
        {"PATH", "/bin"}, {"A", "new"}, {"B", "more"}};
    CHECK(rootfs->config.env == env);
    CHECK(rootfs->config.user == "1000:1000");
    CHECK(rootfs->config.entrypoint == std::vector<std::string>{"/bin/sh"});
    CHECK(rootfs->config.cmd == std::vector<std::string>{"run"});
    CHECK(rootfs->config.labels.at("of") == "me");
    CHECK(rootfs->config.exposed_ports == std::vector<std::string>{"80/tcp"});

    SECTION("the same is the same") {
        auto again = test.store->derive("made:2", wanted);
        REQUIRE(again);
        CHECK(again->digest == made->digest);
        auto other = test.store->derive("made:3", on("base", {writes("first", "2")}));
        REQUIRE(other);
        CHECK(other->digest != made->digest);
    }
    SECTION("what is below may lose its name, and is found by its digest") {
        const std::string digest = test.store->resolve("base")->digest;
        REQUIRE(test.store->derive("by-digest", on(digest)));
        REQUIRE(test.store->remove("base", [](const std::string&) { return false; }));
        CHECK(fs::exists(rootfs->layers[2] / "etc/file"));
        REQUIRE(test.store->resolve("made:1"));
        REQUIRE(test.store->derive("once-more", on("made:1", {writes("third", "3")})));
        CHECK(test.store->resolve("once-more")->layers.size() == 4);
    }
}

TEST_CASE("another name alone keeps the digest, another config does not") {
    TestStore test;
    auto base = test.import(OciImage({a_layer("below")}).archive(), "base");
    REQUIRE(base);
    auto tagged = test.store->derive("tagged", on("base"));
    REQUIRE(tagged);
    CHECK(tagged->digest == base->digest);
    Derivation same = on("base", {[](const fs::path& to) -> Status {
                             fs::create_directory(to);
                             return {};
                         }});
    same.change.user = "1000:1000";
    auto unchanged = test.store->derive("unchanged", same);
    REQUIRE(unchanged);
    CHECK(unchanged->digest == base->digest);
    Derivation other = on("base");
    other.change.user = "0";
    auto changed = test.store->derive("changed", other);
    REQUIRE(changed);
    CHECK(changed->digest != base->digest);
}

TEST_CASE("what cannot be made of an image is refused and leaves nothing") {
    TestStore test;
    REQUIRE(test.import(OciImage({a_layer("below")}).archive(), "base"));
    const auto before = snapshot(test.directory.path());
    const auto refused = [&](const std::string& name, const Derivation& wanted) {
        auto made = test.store->derive(name, wanted);
        REQUIRE_FALSE(made);
        CHECK(snapshot(test.directory.path()) == before);
        return made.error();
    };
    CHECK(refused("new", on("absent")).code() == ErrorCode::not_found);
    CHECK(refused("new", on("sha256:" + std::string(64, '0'))).code() == ErrorCode::not_found);
    CHECK(refused("host", on("base")).code() == ErrorCode::conflict);
    const Error host = refused("new", on("host"));
    CHECK(host.code() == ErrorCode::conflict);
    CHECK_THAT(host.message(), Catch::Contains("host"));
    CHECK(refused("Not Valid", on("base")).code() == ErrorCode::invalid_argument);
    CHECK(refused("a@sha256:" + std::string(64, '0'), on("base")).code() ==
          ErrorCode::invalid_argument);
    const LayerSource failing = [](const fs::path& to) -> Status {
        fs::create_directory(to);
        write(to / "half", "x");
        return Error(ErrorCode::io, "no more");
    };
    CHECK(refused("new", on("base", {writes("first", "1"), failing})).message() == "no more");
    std::vector<LayerSource> many;
    for (int i = 0; i < 256; ++i)
        many.push_back(writes("file", std::to_string(i)));
    CHECK(refused("new", on("base", many)).code() == ErrorCode::conflict);
    Derivation wrong = on("base");
    wrong.change.working_directory = "relative";
    CHECK_THAT(refused("new", wrong).message(), Catch::Contains("workingDir"));
}

TEST_CASE("a change of config is checked, member by member") {
    const auto problem = [](const std::function<void(ConfigChange&)>& fill) {
        ConfigChange change;
        fill(change);
        auto checked = check_config_change(change);
        return checked ? std::string() : checked.error().message();
    };
    CHECK(problem([](ConfigChange&) {}).empty());
    CHECK(problem([](ConfigChange& c) { c.working_directory = ""; }).empty());
    CHECK(problem([](ConfigChange& c) {
              c.exposed_ports = std::vector<std::string>{"80", "53/udp", "65535/sctp"};
          }).empty());
    for (const char* port : {"", "0", "65536", "80/", "80/http", "x", "80 "}) {
        CHECK_THAT(problem([&](ConfigChange& c) { c.exposed_ports.emplace().emplace_back(port); }),
                   Catch::StartsWith("exposedPorts"));
    }
    CHECK_THAT(problem([](ConfigChange& c) { c.env.emplace().emplace_back("", "x"); }),
               Catch::StartsWith("env"));
    CHECK_THAT(problem([](ConfigChange& c) { c.env.emplace().emplace_back("a=b", "x"); }),
               Catch::StartsWith("env"));
    CHECK_THAT(problem([](ConfigChange& c) { c.cmd.emplace().emplace_back("a\0b", 3); }),
               Catch::StartsWith("cmd"));
    CHECK_THAT(problem([](ConfigChange& c) { c.user = std::string("a\0b", 3); }),
               Catch::StartsWith("user"));
    CHECK_THAT(problem([](ConfigChange& c) { c.labels.emplace().emplace("", "x"); }),
               Catch::StartsWith("labels"));
    CHECK_THAT(problem([](ConfigChange& c) { c.entrypoint.emplace().emplace_back(1 << 20, 'x'); }),
               Catch::StartsWith("config"));
}
