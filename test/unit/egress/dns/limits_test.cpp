#include "egress/dns/clients.hpp"
#include "egress/dns/query_limits.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::egress::dns;

namespace {

const auto start = std::chrono::steady_clock::time_point() + std::chrono::hours(1);

}  // namespace

TEST_CASE("dns limits: what looks registered is the end of a name") {
    CHECK(registered_part("a.b.example.com") == "example.com");
    CHECK(registered_part("a.b.example.co.uk") == "example.co.uk");
    CHECK(registered_part("co.uk") == "co.uk");
    CHECK(registered_part("example.com") == "example.com");
    CHECK(registered_part("localhost") == "localhost");
    CHECK(registered_part("").empty());
    CHECK(registered_part("a\\.b.example.com") == "example.com");
    CHECK(registered_part("a.x\\.com") == "a.x\\.com");
}

TEST_CASE("dns limits: names of ordinary services pass") {
    const NameLimits limits;
    for (const char* name :
         {"", "com", "pypi.org", "files.pythonhosted.org", "e1234.dscb.akamaiedge.net",
          "d111111abcdef8.cloudfront.net", "r3---sn-4g5e6nsz.googlevideo.com",
          "vpce-0123456789abcdef0-abcdefgh-us-east-1a.vpce-svc-0123456789abcdef0.us-east-1."
          "vpce.amazonaws.com",
          "a0123456789abcdef0123456789abcde-0123456789abcdef.elb.us-east-1.amazonaws.com",
          "b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4.ip6.arpa"}) {
        CAPTURE(name);
        CHECK_FALSE(passed_limit(name, limits));
    }
}

TEST_CASE("dns limits: long labels, long names and many labels do not") {
    NameLimits limits;
    CHECK(passed_limit(std::string(51, 'a') + ".example.com", limits));
    CHECK_FALSE(passed_limit(std::string(50, 'a') + ".example.com", limits));
    const std::string forty = std::string(40, 'a') + '.';
    CHECK(passed_limit(forty + forty + forty + "example.com", limits));
    CHECK_FALSE(passed_limit(forty + forty + "example.com", limits));
    CHECK(passed_limit("a.b.c.d.e.f.g.h.i.j.k.example.com", limits));
    // What cannot be printed counts as the one byte that it is.
    std::string binary;
    for (int i = 0; i < 50; ++i)
        binary += "\\001";
    CHECK_FALSE(passed_limit(binary + ".example.com", limits));
    CHECK(passed_limit(binary + "\\..example.com", limits));
    limits.label = limits.below = limits.labels = 0;
    CHECK_FALSE(passed_limit(std::string(63, 'a') + "." + std::string(63, 'b') + ".c.d", limits));
}

TEST_CASE("dns limits: types that carry anything or everything are refused, listed or not") {
    namespace dns = opensandbox::net::dns;
    auto types = ProxySettings::default_types();
    for (const std::uint16_t type : {dns::kTypeA, dns::kTypeAaaa, dns::kTypeHttps, dns::kTypeTxt})
        CHECK_FALSE(refused_type(type, types));
    types.insert({dns::kTypeAny, dns::kTypeAxfr, dns::kTypeIxfr, dns::kTypeNull, dns::kTypeOpt});
    for (const std::uint16_t type :
         {dns::kTypeAny, dns::kTypeAxfr, dns::kTypeIxfr, dns::kTypeNull, dns::kTypeOpt})
        CHECK(refused_type(type, types));
    CHECK(refused_type(65280, types));
    CHECK(*refused_type(dns::kTypeNull, types) == "query type 10 is not allowed");
}

TEST_CASE("dns limits: only so many names below a domain in a minute") {
    NameSpread spread;
    for (const char* name : {"a.x.com", "b.x.com", "a.x.com", "c.x.com", "b.x.com"})
        CHECK(spread.admit("x.com", name, 3, start));
    CHECK_FALSE(spread.admit("x.com", "d.x.com", 3, start + std::chrono::seconds(59)));
    CHECK(spread.admit("x.com", "a.x.com", 3, start));
    CHECK(spread.admit("y.com", "d.y.com", 3, start));
    CHECK_FALSE(spread.idle(start + std::chrono::seconds(59)));
    CHECK(spread.idle(start + std::chrono::seconds(60)));
    CHECK(spread.admit("x.com", "d.x.com", 3, start + std::chrono::seconds(60)));
    CHECK(spread.admit("x.com", "e.x.com", 0, start));
}

TEST_CASE("dns limits: a crowd of domains does not hide the one that is used much") {
    NameSpread spread;
    for (int i = 0; i < 10; ++i)
        CHECK(spread.admit("x.com", std::to_string(i), 10, start));
    for (int i = 0; i < 2000; ++i)
        CHECK(spread.admit(std::to_string(i) + ".com", "a", 10, start));
    CHECK_FALSE(spread.admit("x.com", "another", 10, start));
}

TEST_CASE("dns limits: a rate admits a burst, then what it says") {
    RateLimit rate;
    int admitted = 0;
    for (int i = 0; i < 100; ++i)
        admitted += rate.admit(10, 5, start) ? 1 : 0;
    CHECK(admitted == 5);
    for (int i = 0; i < 100; ++i)
        admitted += rate.admit(10, 5, start + std::chrono::milliseconds(200)) ? 1 : 0;
    CHECK(admitted == 7);
    for (int i = 0; i < 100; ++i)
        admitted += rate.admit(10, 5, start + std::chrono::hours(1)) ? 1 : 0;
    CHECK(admitted == 12);
    CHECK(rate.admit(0, 0, start + std::chrono::hours(1)));
}

TEST_CASE("dns limits: turns are given back") {
    ClientLimits limits;
    limits.in_flight = 2;
    limits.all_in_flight = 3;
    Clients clients(limits);
    const auto one = clients.share(1, start);
    const auto two = clients.share(2, start);
    Turn a = clients.query_turn(one);
    {
        const Turn b = clients.query_turn(one);
        CHECK(b.taken());
        CHECK_FALSE(clients.query_turn(one).taken());
        const Turn c = clients.query_turn(two);
        CHECK(c.taken());
        CHECK_FALSE(clients.query_turn(two).taken());
    }
    CHECK(one->in_flight == 1);
    Turn moved = std::move(a);
    CHECK(one->in_flight == 1);
    moved = Turn();
    CHECK(one->in_flight == 0);
    CHECK(two->in_flight == 0);
}

TEST_CASE("dns limits: clients that have been quiet are forgotten, those in use are not") {
    Clients clients{ClientLimits()};
    const auto held = clients.share(1, start);
    (void)clients.share(2, start);
    (void)clients.share(3, start + std::chrono::hours(1));
    CHECK(clients.size() == 2);
    CHECK(clients.share(1, start + std::chrono::hours(1)) == held);
}
