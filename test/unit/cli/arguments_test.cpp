#include "cli/arguments.hpp"

#include "cli/invocation.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::cli;

namespace {

Arguments with(std::string_view option, std::string value) {
    Arguments arguments;
    arguments.add_option(option, std::move(value));
    return arguments;
}

void expect_problem(const Arguments& arguments, std::initializer_list<const char*> parts) {
    REQUIRE(arguments.problem());
    CHECK(arguments.problem()->exit_code() == 2);
    const std::string text = arguments.problem()->describe();
    for (const char* part : parts) {
        CAPTURE(text, part);
        CHECK(text.find(part) != std::string::npos);
    }
}

}  // namespace

TEST_CASE("integers must be whole and within their range") {
    auto good = with("--port", "8080");
    CHECK(good.integer("--port", 1, 65535) == 8080);
    CHECK_FALSE(good.problem());
    CHECK_FALSE(good.integer("--page", 1, 2));
    for (const char* value : {"0", "65536", "x", "", "1.5", "80x", "-1", "99999999999999999999"}) {
        auto bad = with("--port", value);
        CHECK_FALSE(bad.integer("--port", 1, 65535));
        expect_problem(bad, {"--port", "from 1 to 65535"});
    }
}

TEST_CASE("durations name themselves when they are none") {
    auto bad = with("--timeout", "soon");
    CHECK_FALSE(bad.duration("--timeout"));
    expect_problem(bad, {"--timeout", "'soon'", "1h30m45s"});
    auto none = with("--timeout", "None");
    auto lifetime = none.duration_or_none("--timeout");
    REQUIRE(lifetime);
    CHECK_FALSE(lifetime->has_value());
    CHECK_FALSE(none.problem());
    auto refused = with("--timeout", "never");
    static_cast<void>(refused.duration_or_none("--timeout"));
    expect_problem(refused, {"--timeout", "'never'", "none"});
}

TEST_CASE("pairs are split at the first equals sign") {
    Arguments arguments;
    arguments.add_option("--env", "A=1=2");
    arguments.add_option("--env", "B=");
    CHECK(arguments.pairs("--env") ==
          std::vector<std::pair<std::string, std::string>>{{"A", "1=2"}, {"B", ""}});
    for (const char* value : {"A", "=x", ""}) {
        auto bad = with("--env", value);
        static_cast<void>(bad.pairs("--env"));
        expect_problem(bad, {"--env", "KEY=VALUE"});
    }
}

TEST_CASE("modes are octal") {
    CHECK(with("--mode", "644").file_mode("--mode") == 0644u);
    CHECK(with("--mode", "0755").file_mode("--mode") == 0755u);
    CHECK(with("--mode", "4755").file_mode("--mode") == 04755u);
    for (const char* value : {"888", "", "rwx", "77777", "-1", "0o644"}) {
        auto bad = with("--mode", value);
        CHECK_FALSE(bad.file_mode("--mode"));
        expect_problem(bad, {"--mode", "0755"});
    }
}

TEST_CASE("choices ignore case and list what is accepted") {
    Arguments arguments;
    CHECK(arguments.choice("--state", "running", {"Pending", "Running"}) == "Running");
    CHECK_FALSE(arguments.choice("--state", "gone", {"Pending", "Running"}));
    expect_problem(arguments, {"--state", "'gone'", "Pending, Running"});
}

TEST_CASE("the first problem is the one that is reported") {
    Arguments arguments;
    arguments.add_option("--port", "x");
    arguments.add_option("--mode", "y");
    static_cast<void>(arguments.integer("--port", 1, 2));
    static_cast<void>(arguments.file_mode("--mode"));
    expect_problem(arguments, {"--port"});
}

TEST_CASE("connection options become overrides") {
    Arguments arguments;
    arguments.add_option("--domain", "d:1");
    arguments.add_option("--api-key", "k");
    arguments.add_option("--request-timeout", "7");
    arguments.add_option("--use-server-proxy", "");
    auto overrides = connection_overrides(arguments);
    CHECK(overrides.domain == "d:1");
    CHECK(overrides.api_key == "k");
    CHECK(overrides.request_timeout == std::chrono::seconds(7));
    CHECK(overrides.use_server_proxy == true);
    CHECK_FALSE(overrides.protocol);
    arguments.add_option("--server", "http://s:2");
    overrides = connection_overrides(arguments);
    CHECK(overrides.domain == "http://s:2");
    CHECK(overrides.protocol == "http");
    CHECK_FALSE(arguments.problem());
    auto bad = with("--protocol", "gopher");
    static_cast<void>(connection_overrides(bad));
    expect_problem(bad, {"--protocol", "'gopher'", "http, https"});
    auto scheme = with("--server", "ftp://x");
    static_cast<void>(connection_overrides(scheme));
    expect_problem(scheme, {"--server", "'ftp'"});
    auto timeout = with("--request-timeout", "1m");
    static_cast<void>(connection_overrides(timeout));
    expect_problem(timeout, {"--request-timeout", "'1m'"});
}
