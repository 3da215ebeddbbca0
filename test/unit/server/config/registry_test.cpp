#include "server/config/config.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using registry::PullPolicy;

TEST_CASE("images are pulled when they are missing unless the configuration says otherwise") {
    auto config = server::parse_config("", "test");
    REQUIRE(config);
    CHECK(config->registry.policy == PullPolicy::missing);
    CHECK(config->registry.ca_file.empty());
    CHECK(server::parse_config("[native]\npull = \"never\"", "test")->registry.policy ==
          PullPolicy::never);
    CHECK(server::parse_config("[native]\npull = \"always\"", "test")->registry.policy ==
          PullPolicy::always);
}

TEST_CASE("registries get authorities of their own, or go without TLS") {
    auto config = server::parse_config(R"([registry]
ca_file = "/etc/ca.pem"
ca_hosts = ["registry.example:5000", "[::1]:5000"]
plain_http_hosts = ["plain.example"]
)",
                                       "test");
    REQUIRE(config);
    CHECK(config->registry.ca_file == "/etc/ca.pem");
    CHECK(config->registry.ca_hosts.size() == 2);
    CHECK(config->registry.plain_http_hosts == std::vector<std::string>{"plain.example"});
}
