#include "base/state_directory.hpp"
#include "server/role/startup.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::server;

namespace {

/// Sets an environment variable for one test.
struct Variable {
    Variable(const char* n, const char* value) : name(n) { ::setenv(name, value, 1); }
    ~Variable() { ::unsetenv(name); }
    const char* name;
};

}  // namespace

TEST_CASE("the key comes from the environment, the configuration, or a private file") {
    test_support::ScratchDirectory scratch;
    Config config;
    auto made = resolve_api_key(config, scratch.path);
    REQUIRE(made);
    REQUIRE(made->size() == 32);
    struct stat info{};
    REQUIRE(::stat(api_key_file(scratch.path).c_str(), &info) == 0);
    REQUIRE((info.st_mode & 0777) == 0600);
    REQUIRE(*resolve_api_key(config, scratch.path) == *made);
    config.api_key = "configured";
    REQUIRE(*resolve_api_key(config, scratch.path) == "configured");
    Variable set("OPENSANDBOX_SERVER_API_KEY", "");
    REQUIRE(resolve_api_key(config, scratch.path)->empty());
}

TEST_CASE("a key file that others could read is closed, an empty one refused") {
    test_support::ScratchDirectory scratch;
    auto path = api_key_file(scratch.path);
    std::ofstream(path) << "given\n";
    ::chmod(path.c_str(), 0644);
    REQUIRE(*resolve_api_key(Config(), scratch.path) == "given");
    struct stat info{};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    REQUIRE((info.st_mode & 0777) == 0600);
    std::ofstream(path, std::ios::trunc) << "\n";
    REQUIRE_FALSE(resolve_api_key(Config(), scratch.path));
}
