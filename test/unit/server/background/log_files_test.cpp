#include "server/background/log_files.hpp"

#include "base/log.hpp"
#include "base/log_file.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

using namespace opensandbox;
using namespace opensandbox::server;
using Catch::Contains;
using test_support::ScratchDirectory;

namespace {

std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a rotating file is turned over when it is full and keeps so many") {
    ScratchDirectory scratch;
    auto path = scratch.path / "deep" / "er" / "x.log";
    auto opened = log::RotatingFile::open(path, 20, 2);
    REQUIRE(opened.has_value());
    for (const char* line : {"aaaaaaaaa\n", "bbbbbbbbb\n", "ccccccccc\n", "ddddddddd\n",
                             "eeeeeeeee\n", "fffffffff\n", "ggggggggg\n"})
        opened.value()->append(line);
    CHECK(text_of(path) == "ggggggggg\n");
    CHECK(text_of(path.string() + ".1") == "eeeeeeeee\nfffffffff\n");
    CHECK(text_of(path.string() + ".2") == "ccccccccc\nddddddddd\n");
    CHECK_FALSE(std::filesystem::exists(path.string() + ".3"));
    auto again = log::RotatingFile::open(path, 20, 0);
    again.value()->append("hhhhhhhhh\n");
    again.value()->append("iiiiiiiii\n");
    CHECK(text_of(path) == "iiiiiiiii\n");
    CHECK_FALSE(log::RotatingFile::open("/proc/none/x.log", 0, 0).has_value());
}

TEST_CASE("log files: requests go to one, the rest to the other") {
    ScratchDirectory scratch;
    LogFileConfig config;
    CHECK(LogFiles::open(config).value() == nullptr);
    config.enabled = true;
    config.path = scratch.path / "server.log";
    {
        auto files = LogFiles::open(config);
        REQUIRE(files.has_value());
        log::info("request", {{"path", "/x"}});
        log::info("started");
    }
    log::info("after");
    CHECK_THAT(text_of(scratch.path / "access.log"), Contains("path=/x") && !Contains("started"));
    CHECK_THAT(text_of(scratch.path / "server.log"), Contains("started") && !Contains("/x"));
    CHECK_THAT(text_of(scratch.path / "server.log"), !Contains("after"));
}
