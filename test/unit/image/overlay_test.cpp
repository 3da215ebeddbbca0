#include "archives.hpp"
#include "base/scope_exit.hpp"

#include <catch2/catch.hpp>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

TEST_CASE("the kernel stacks the layers as the image means them") {
    TestStore test;
    std::string lower = tar({
        TarEntry("etc/gone", "x"),
        TarEntry("etc/kept", "x"),
        TarEntry("opaque/old", "x"),
        TarEntry("merged/old", "x"),
        TarEntry("again/old", "x"),
        TarEntry("tree/deep/old", "x"),
    });
    std::string upper = tar({
        TarEntry("etc/.wh.gone"),
        directory("opaque/"),
        TarEntry("opaque/.wh..wh..opq"),
        TarEntry("opaque/new", "x"),
        TarEntry("merged/new", "x"),
        TarEntry(".wh.again"),
        TarEntry("again/new", "x"),
        TarEntry(".wh.tree"),
    });
    REQUIRE(test.import(OciImage({lower, upper}).archive()));
    auto rootfs = test.store->resolve("test");
    REQUIRE(rootfs);
    std::string options = "lowerdir=";
    for (const fs::path& layer : rootfs->layers)
        options += layer.string() + ":";
    options.pop_back();
    TemporaryDirectory target;
    REQUIRE(::mount("overlay", target.path().c_str(), "overlay", MS_RDONLY, options.c_str()) == 0);
    ScopeExit unmount([&] { ::umount2(target.path().c_str(), MNT_DETACH); });
    std::vector<std::string> seen;
    for (const auto& entry : fs::recursive_directory_iterator(target.path())) {
        seen.push_back(entry.path().lexically_relative(target.path()).string());
    }
    std::ranges::sort(seen);
    CHECK(seen == std::vector<std::string>{"again", "again/new", "etc", "etc/kept", "merged",
                                           "merged/new", "merged/old", "opaque", "opaque/new"});
}
