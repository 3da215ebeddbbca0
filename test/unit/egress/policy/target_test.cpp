#include "egress/policy/target.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::egress;
using opensandbox::ErrorCode;

namespace {

Target target(std::string_view text) {
    INFO(text);
    auto parsed = Target::parse(text);
    REQUIRE(parsed.has_value());
    return *parsed;
}

std::string refusal(std::string_view text) {
    INFO(text);
    const auto parsed = Target::parse(text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code() == ErrorCode::invalid_argument);
    return parsed.error().message();
}

}  // namespace

TEST_CASE("a target is an address, a network, a name or a wildcard") {
    CHECK(target("10.1.2.3").kind() == Target::Kind::address);
    CHECK(target("10.1.2.3").block().to_string() == "10.1.2.3");
    CHECK(target("fd00::1").block().to_string() == "fd00::1");
    CHECK(target("::ffff:10.0.0.1").block().is_v6());
    CHECK(target("fd00::/8").block().to_string() == "fd00::/8");
    CHECK(target("[fd00::1]").block().to_string() == "fd00::1");
    CHECK(target("0.0.0.0/0").block().prefix() == 0);
    CHECK(target("api.example.com").kind() == Target::Kind::name);
    CHECK(target("api.example.com").name() == "api.example.com");
    CHECK(target("*.example.com").kind() == Target::Kind::wildcard);
    CHECK(target("*.example.com").name() == "example.com");
    CHECK(target("localhost").name() == "localhost");
    CHECK(target("_dmarc.my_db.example").name() == "_dmarc.my_db.example");
    CHECK(target("xn--bcher-kva.example").name() == "xn--bcher-kva.example");
    CHECK(target("1.2.3.4.in-addr.arpa").kind() == Target::Kind::name);
}

TEST_CASE("host bits of a network are cleared but its text is kept") {
    CHECK(target("10.1.2.3/8").block().to_string() == "10.0.0.0/8");
    CHECK(target("10.1.2.3/8").text() == "10.1.2.3/8");
    CHECK(target("10.1.2.255/25").block().to_string() == "10.1.2.128/25");
    CHECK(target("fd00:1:2::9/33").block().to_string() == "fd00:1::/33");
}

TEST_CASE("a target may be limited to ports and a protocol") {
    const auto scope = [](std::string_view text) { return target(text).scope(); };
    CHECK(scope("api.example.com").is_all());
    CHECK(scope("api.example.com:443") == Scope(true, true, {443, 443}));
    CHECK(scope("*.example.com:8000-8100/TCP") == Scope(true, false, {8000, 8100}));
    CHECK(scope("10.0.0.0/8:5432/tcp") == Scope(true, false, {5432, 5432}));
    CHECK(scope("10.0.0.1:53/udp") == Scope(false, true, {53, 53}));
    CHECK(scope("[fd00::1]:443") == Scope(true, true, {443, 443}));
    CHECK(scope("[fd00::/8]:1-65535/udp") == Scope(false, true, {1, 65535}));
    // Without brackets every digit belongs to the address.
    CHECK(scope("fd00::1:443").is_all());
    CHECK(target("fd00::1:443").block().to_string() == "fd00::1:443");
    CHECK(target("10.0.0.0/8:5432/tcp").block().to_string() == "10.0.0.0/8");
    for (const char* text : {":443", ":8000-8100/tcp", ":53/udp"}) {
        CHECK(scope("a.example" + std::string(text)).to_string() == text);
    }
}

TEST_CASE("white space and one dot at the end do not belong to a target") {
    CHECK(target("  Api.Example.COM. \n").text() == "Api.Example.COM");
    CHECK(target("  Api.Example.COM. \n").name() == "api.example.com");
    CHECK(target("Api.Example.COM.").key() == "api.example.com");
    CHECK(target("*.example.com.:443").text() == "*.example.com:443");
}

TEST_CASE("a bad target is refused with the rule that it breaks") {
    CHECK(refusal("") == "egress target cannot be empty");
    CHECK(refusal(" \t") == "egress target cannot be empty");
    CHECK_THAT(refusal("https://example.com"), Catch::Contains("not a URL"));
    CHECK_THAT(refusal("example.com/path"), Catch::Contains("without a path"));
    CHECK_THAT(refusal("*"), Catch::Contains("a * alone"));
    CHECK_THAT(refusal("*example.com"), Catch::Contains("whole labels"));
    CHECK_THAT(refusal("*.*.example.com"), Catch::Contains("whole labels"));
    CHECK_THAT(refusal("a.*.com"), Catch::Contains("whole labels"));
    CHECK_THAT(refusal("*."), Catch::Contains("must not be empty"));
    CHECK_THAT(refusal("a..example.com"), Catch::Contains("empty labels"));
    CHECK_THAT(refusal(".example.com"), Catch::Contains("empty labels"));
    CHECK_THAT(refusal("example.com.."), Catch::Contains("empty labels"));
    CHECK_THAT(refusal("exa mple.com"), Catch::Contains("letters, digits"));
    CHECK_THAT(refusal("user@example.com"), Catch::Contains("letters, digits"));
    CHECK_THAT(refusal("b\xc3\xbc"
                       "cher.example"),
               Catch::Contains("punycode"));
    CHECK_THAT(refusal("[fd00::1"), Catch::Contains("not closed"));
    CHECK_THAT(refusal("[fd00::1]443"), Catch::Contains("only a port"));
    CHECK_THAT(refusal("[10.0.0.1]:80"), Catch::Contains("only IPv6"));
    CHECK_THAT(refusal("[example.com]:80"), Catch::Contains("IPv4 or IPv6"));
    CHECK_THAT(refusal("fd00::/8:443"), Catch::Contains("has brackets"));
    CHECK_THAT(refusal("fe80::1%eth0"), Catch::Contains("IPv4 or IPv6"));
    CHECK_THAT(refusal("example.com:80:90"), Catch::Contains("IPv4 or IPv6"));
}

TEST_CASE("what was meant as an address is not taken for a name") {
    CHECK_THAT(refusal("10.0.0"), Catch::Contains("whole IPv4 address"));
    CHECK_THAT(refusal("256.1.1.1"), Catch::Contains("whole IPv4 address"));
    CHECK_THAT(refusal("010.0.0.1"), Catch::Contains("whole IPv4 address"));
    CHECK_THAT(refusal("0x7f.0.0.0x1"), Catch::Contains("whole IPv4 address"));
    CHECK_THAT(refusal("2130706433"), Catch::Contains("whole IPv4 address"));
    CHECK_THAT(refusal("10.0.0.0/33"), Catch::Contains("from 0 to 32"));
    CHECK_THAT(refusal("10.0.0.0/08"), Catch::Contains("from 0 to 32"));
    CHECK_THAT(refusal("10.0.0.0/"), Catch::Contains("from 0 to 32"));
    CHECK_THAT(refusal("fd00::/129"), Catch::Contains("from 0 to 128"));
    CHECK_THAT(refusal("10.0.0/8"), Catch::Contains("IPv4 or IPv6"));
}

TEST_CASE("a bad port is refused") {
    for (const char* text : {"a.example:", "a.example:0", "a.example:65536", "a.example:x",
                             "a.example:-1", "a.example:1-", "a.example:+1", "a.example: 1"}) {
        CHECK_THAT(refusal(text), Catch::Contains("from 1 to 65535"));
    }
    CHECK_THAT(refusal("a.example:90-80"), Catch::Contains("above the last"));
    CHECK_THAT(refusal("a.example:80/sctp"), Catch::Contains("tcp or udp"));
    CHECK_THAT(refusal("a.example:80/"), Catch::Contains("tcp or udp"));
}

TEST_CASE("labels have at most 63 characters and names 253") {
    const std::string label(63, 'a');
    CHECK(target(label + ".example").name() == label + ".example");
    CHECK_THAT(refusal("a" + label + ".example"), Catch::Contains("63"));
    const std::string name = label + "." + label + "." + label + "." + std::string(61, 'b');
    REQUIRE(name.size() == 253);
    CHECK(target(name).name() == name);
    CHECK(target(name + ".").name() == name);
    CHECK_THAT(refusal(name + "b"), Catch::Contains("253"));
}
