#include "sdk/config_file.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace opensandbox::sdk;
using namespace std::chrono_literals;

namespace {

Environment environment_of(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
        auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    };
}

std::optional<std::string> no_key() {
    return std::nullopt;
}
std::optional<std::string> local_key() {
    return "local";
}

}  // namespace

TEST_CASE("without any source the defaults hold") {
    auto config = resolve_connection({}, environment_of({}), {}, no_key);
    REQUIRE(config.has_value());
    CHECK(config->domain == "127.0.0.1:8080");
    CHECK(config->protocol == "http");
    CHECK(config->api_key.empty());
    CHECK(config->request_timeout == 30s);
    CHECK_FALSE(config->use_server_proxy);
}

TEST_CASE("options are stronger than the environment, which is stronger than the file") {
    ConfigFile file;
    file.domain = "file:1";
    file.api_key = "file";
    file.protocol = "https";
    file.request_timeout = 5;
    file.use_server_proxy = true;
    auto from_file = resolve_connection({}, environment_of({}), file, local_key);
    REQUIRE(from_file.has_value());
    CHECK(from_file->domain == "file:1");
    CHECK(from_file->api_key == "file");
    CHECK(from_file->protocol == "https");
    CHECK(from_file->request_timeout == 5s);
    CHECK(from_file->use_server_proxy);

    auto environment = environment_of({{"OPEN_SANDBOX_DOMAIN", "env:2"},
                                       {"OPEN_SANDBOX_API_KEY", "env"},
                                       {"OPEN_SANDBOX_PROTOCOL", "http"},
                                       {"OPEN_SANDBOX_REQUEST_TIMEOUT", "7"},
                                       {"OPEN_SANDBOX_USE_SERVER_PROXY", "No"}});
    auto from_environment = resolve_connection({}, environment, file, local_key);
    REQUIRE(from_environment.has_value());
    CHECK(from_environment->domain == "env:2");
    CHECK(from_environment->api_key == "env");
    CHECK(from_environment->protocol == "http");
    CHECK(from_environment->request_timeout == 7s);
    CHECK_FALSE(from_environment->use_server_proxy);

    ConnectionOverrides options;
    options.domain = "option:3";
    options.api_key = "option";
    options.request_timeout = 9s;
    options.use_server_proxy = true;
    auto from_options = resolve_connection(options, environment, file, local_key);
    REQUIRE(from_options.has_value());
    CHECK(from_options->domain == "option:3");
    CHECK(from_options->api_key == "option");
    CHECK(from_options->request_timeout == 9s);
    CHECK(from_options->use_server_proxy);
}

TEST_CASE("the local server's key goes to loopback only") {
    ConnectionOverrides options;
    for (const char* domain :
         {"127.0.0.1:8080", "localhost", "localhost:99", "[::1]:8080", "http://127.1.2.3:80/x"}) {
        options.domain = domain;
        CAPTURE(domain);
        CHECK(resolve_connection(options, environment_of({}), {}, local_key)->api_key == "local");
    }
    for (const char* domain : {"example.org", "127.0.0.1.example.org:8080", "10.0.0.1",
                               "localhost.example.org", "[2001:db8::1]:8080", "127.evil"}) {
        options.domain = domain;
        CAPTURE(domain);
        CHECK(resolve_connection(options, environment_of({}), {}, local_key)->api_key.empty());
    }
}

TEST_CASE("malformed values are refused with their name and the accepted forms") {
    auto timeout = resolve_connection({}, environment_of({{"OPEN_SANDBOX_REQUEST_TIMEOUT", "1m"}}),
                                      {}, no_key);
    REQUIRE(timeout.has_error());
    CHECK(timeout.error().message().find("OPEN_SANDBOX_REQUEST_TIMEOUT") != std::string::npos);
    CHECK(timeout.error().message().find("'1m'") != std::string::npos);
    auto proxy = resolve_connection(
        {}, environment_of({{"OPEN_SANDBOX_USE_SERVER_PROXY", "maybe"}}), {}, no_key);
    REQUIRE(proxy.has_error());
    CHECK(proxy.error().message().find("true or false") != std::string::npos);
    auto protocol =
        resolve_connection({}, environment_of({{"OPEN_SANDBOX_PROTOCOL", "ftp"}}), {}, no_key);
    REQUIRE(protocol.has_error());
    CHECK(protocol.error().message().find("http or https") != std::string::npos);
}

TEST_CASE("the configuration file is read, unknown keys ignored") {
    auto file = parse_config_file(R"(
[connection]
domain = "h:1"
request_timeout = 12
later = 1
[output]
color = false
[defaults]
image = "python:3.12"
timeout = "none"
[unknown]
x = 1
)",
                                  "config.toml");
    REQUIRE(file.has_value());
    CHECK(file->domain == "h:1");
    CHECK(file->request_timeout == 12);
    CHECK(file->color == false);
    CHECK(file->default_image == "python:3.12");
    CHECK(file->default_timeout == "none");
    CHECK_FALSE(file->api_key);
}

TEST_CASE("a malformed configuration file is refused with its line or key") {
    auto syntax = parse_config_file("[connection]\ndomain = \n", "config.toml");
    REQUIRE(syntax.has_error());
    CHECK(syntax.error().message().find("config.toml, line 2") != std::string::npos);
    auto bytes = parse_config_file("[connection]\n\xff = 1\n", "config.toml");
    REQUIRE_FALSE(bytes);
    CHECK(bytes.error().message().find("config.toml:2") != std::string::npos);
    auto type = parse_config_file("[connection]\nrequest_timeout = \"30\"\n", "config.toml");
    REQUIRE(type.has_error());
    CHECK(type.error().message().find("connection.request_timeout") != std::string::npos);
    CHECK(type.error().message().find("integer") != std::string::npos);
}

TEST_CASE("a configuration file that is not there is told apart from one that is broken") {
    auto missing = load_config_file("/nonexistent/config.toml");
    REQUIRE(missing.has_error());
    CHECK(missing.error().code() == ErrorCode::not_found);
}
