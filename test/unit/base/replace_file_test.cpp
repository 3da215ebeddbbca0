#include "base/replace_file.hpp"

#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

using namespace opensandbox;
using test_support::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("a file is replaced as a whole and stays private", "[base][replace]") {
    ScratchDirectory scratch;
    const fs::path file = scratch.path / "file";
    const std::string large(300'000, 'x');
    REQUIRE(replace_file(file, large));
    CHECK(content_of(file) == large);
    REQUIRE(replace_file(file, "short"));
    CHECK(content_of(file) == "short");
    struct stat status{};
    REQUIRE(::stat(file.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
    CHECK_FALSE(fs::exists(scratch.path / "file.new"));
}

TEST_CASE("a replacement that fails leaves the old file and nothing beside it", "[base][replace]") {
    ScratchDirectory scratch;
    const fs::path full = scratch.path / "directory";
    fs::create_directories(full / "child");
    const auto refused = replace_file(full, "content");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find(full.string()) != std::string::npos);
    CHECK(fs::exists(full / "child"));
    CHECK_FALSE(fs::exists(scratch.path / "directory.new"));
    CHECK_FALSE(replace_file(scratch.path / "absent" / "file", "content"));
}

TEST_CASE("what an interrupted replacement left aside is overwritten", "[base][replace]") {
    ScratchDirectory scratch;
    const fs::path file = scratch.path / "file";
    const fs::path aside = scratch.path / "aside";
    std::ofstream(aside) << "longer than what comes now";
    REQUIRE(replace_file(file, "new", aside));
    CHECK(content_of(file) == "new");
    CHECK_FALSE(fs::exists(aside));
}
