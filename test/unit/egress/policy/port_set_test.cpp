#include "egress/policy/port_set.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::egress;

namespace {

PortSet tcp(std::uint16_t first, std::uint16_t last) {
    return PortSet::of(Scope(true, false, {first, last}));
}

}  // namespace

TEST_CASE("port sets are added, taken away and compared") {
    PortSet set = tcp(80, 90);
    set.add(tcp(91, 100));
    CHECK(set.to_string() == "tcp 80-100");
    set.add(tcp(443, 443));
    set.add(PortSet::of(Scope(false, true, {53, 53})));
    CHECK(set.to_string() == "tcp 80-100,443 udp 53");
    set.remove(tcp(85, 85));
    CHECK(set.to_string() == "tcp 80-84,86-100,443 udp 53");
    CHECK(set.contains(Transport::tcp, 84));
    CHECK_FALSE(set.contains(Transport::tcp, 85));
    CHECK(set.contains(Transport::udp, 53));
    CHECK_FALSE(set.contains(Transport::other, 0));
    CHECK(set.contains(tcp(86, 100)));
    CHECK_FALSE(set.contains(tcp(84, 86)));
    set.keep(tcp(0, 90));
    CHECK(set.to_string() == "tcp 80-84,86-90");
}

TEST_CASE("everything but a port keeps the protocols without ports") {
    PortSet set = PortSet::all();
    CHECK(set.is_all());
    CHECK(set.to_string() == "all");
    set.remove(PortSet::of(Scope(true, true, {25, 25})));
    CHECK(set.to_string() == "tcp 0-24,26-65535 udp 0-24,26-65535 other");
    CHECK_FALSE(set.is_all());
    set.add(PortSet::of(Scope(true, true, {25, 25})));
    CHECK(set.is_all());
    set.remove(tcp(0, 65535));
    CHECK(set.to_string() == "udp 0-65535 other");
    set.remove(PortSet::all());
    CHECK(set.empty());
    CHECK(set.to_string() == "none");
}
