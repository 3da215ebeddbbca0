#include "server/role/startup.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

TEST_CASE("serve flags win over the configuration") {
    auto options = parse_serve_options({"--port=0", "--host", "::1", "--state-dir", "/s",
                                        "--log-format=json", "--log-level", "warning"});
    REQUIRE(options.has_value());
    Config config;
    config.port = 1;
    apply(*options, config);
    REQUIRE(config.port == 0);
    REQUIRE(config.host == "::1");
    REQUIRE(config.state_dir == "/s");
    REQUIRE(config.log_format == log::Format::json);
    REQUIRE(config.log_level == log::Level::warn);
}

TEST_CASE("serve flags that are wrong are named") {
    for (std::vector<std::string> bad : {std::vector<std::string>{"--nope"},
                                         {"positional"},
                                         {"--port"},
                                         {"--port", "x"},
                                         {"--port=65536"},
                                         {"--log-format", "xml"},
                                         {"--log-level", "loud"}}) {
        INFO(bad[0]);
        auto options = parse_serve_options(bad);
        REQUIRE_FALSE(options.has_value());
        CHECK_THAT(options.error().message(), Catch::Contains(bad[0].substr(0, bad[0].find('='))));
    }
    REQUIRE(parse_serve_options({"--help"})->help);
}
