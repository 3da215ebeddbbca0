#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::egress;

TEST_CASE("an overlay file has a target a line") {
    const auto rules =
        parse_overlay("# metadata\n169.254.169.254\n\n  *.evil.example \r\n\t# no\nfd00::/8:53/udp",
                      Action::deny, kDenyFile);
    CHECK_FALSE(rules.has_value());
    CHECK(rules.error().message().starts_with("deny.always line 6: "));
    const auto good = parse_overlay(
        "# metadata\n169.254.169.254\n\n  *.evil.example \r\n\t# no\n"
        "[fd00::/8]:53/udp",
        Action::deny, kDenyFile);
    REQUIRE(good.has_value());
    CHECK(test::texts(*good) ==
          "deny 169.254.169.254, deny *.evil.example, deny [fd00::/8]:53/udp");
    CHECK(test::texts(parse_overlay("a.example\n", Action::allow, kAllowFile).value()) ==
          "allow a.example");
    CHECK(parse_overlay("", Action::allow, kAllowFile).value().empty());
}

TEST_CASE("a bad overlay line is named by file and number") {
    const auto rules = parse_overlay("a.example\n#\nhttp://x\n", Action::allow, kAllowFile);
    REQUIRE_FALSE(rules.has_value());
    CHECK_THAT(rules.error().message(),
               Catch::StartsWith("allow.always line 3: ") && Catch::Contains("not a URL"));
}

TEST_CASE("lookups of listed names are not logged") {
    const auto skip =
        LogSkip::parse("# noisy\ntelemetry.example\n*.Metrics.example.\n", kLogSkipFile);
    REQUIRE(skip.has_value());
    CHECK(skip->size() == 2);
    CHECK(skip->skips("Telemetry.Example."));
    CHECK_FALSE(skip->skips("a.telemetry.example"));
    CHECK(skip->skips("a.b.metrics.example"));
    CHECK_FALSE(skip->skips("metrics.example"));
    CHECK_FALSE(skip->skips("xmetrics.example"));
    CHECK_FALSE(LogSkip().skips("a.example"));
}

TEST_CASE("log_skip.always takes names only") {
    const auto message = [](std::string_view text) {
        const auto skip = LogSkip::parse(text, kLogSkipFile);
        REQUIRE_FALSE(skip.has_value());
        return skip.error().message();
    };
    CHECK(message("a.example\n10.0.0.0/8\n") ==
          "log_skip.always line 2: must be a name, not an address");
    CHECK(message("a.example:80") == "log_skip.always line 1: must be a name without a port");
}
