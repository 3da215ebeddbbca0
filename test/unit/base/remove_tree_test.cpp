#include "base/remove_tree.hpp"

#include "base/unique_fd.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdlib.h>
#include <unistd.h>

using namespace opensandbox;

namespace {

std::filesystem::path make_temporary() {
    char name[] = "/tmp/opensandbox-test-XXXXXX";
    return ::mkdtemp(name);
}

}  // namespace

TEST_CASE("a tree nested deeper than any path is removed", "[base][remove]") {
    const auto top = make_temporary();
    UniqueFd at(::open(top.c_str(), O_PATH | O_DIRECTORY));
    for (int level = 0; level < 1500; ++level) {
        REQUIRE(::mkdirat(at.get(), "directory", 0700) == 0);
        UniqueFd file(::openat(at.get(), "file", O_CREAT | O_WRONLY, 0000));
        REQUIRE(file);
        at = UniqueFd(::openat(at.get(), "directory", O_PATH | O_DIRECTORY));
        REQUIRE(at);
    }
    at.reset();
    REQUIRE(remove_tree(top).has_value());
    CHECK_FALSE(std::filesystem::exists(top));
}

TEST_CASE("removing a tree does not follow its links", "[base][remove]") {
    const auto outside = make_temporary();
    std::ofstream(outside / "kept") << "x";
    const auto top = make_temporary();
    std::filesystem::create_directory_symlink(outside, top / "link");
    REQUIRE(remove_tree(top).has_value());
    CHECK(std::filesystem::exists(outside / "kept"));
    REQUIRE(remove_tree(outside).has_value());
}

TEST_CASE("removing what does not exist succeeds", "[base][remove]") {
    CHECK(remove_tree("/tmp/opensandbox-test-no-such-directory").has_value());
}
