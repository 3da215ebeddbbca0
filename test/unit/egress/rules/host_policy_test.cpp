#include "unit/egress/rules/host_topology.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::PolicyRules;
using rules::Scope;

TEST_CASE("without a policy a sandbox is not touched, so the other tests can fail") {
    EgressTopology net;
    auto table = net.open();
    const Listener v4(net.outside, "192.0.2.2", 8000);
    const Listener v6(net.outside, "fd78::2", 8000);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
    CHECK(connect_to(net.a.place, "fd78::2", 8000) == 0);
}

TEST_CASE("what a policy does not allow is refused at once, in both families") {
    EgressTopology net;
    auto table = net.open();
    CHECK(table.is_protected());
    must(table.add(net.a.guarded(), names_only(), keep_all));
    const Listener v4(net.outside, "192.0.2.2", 8000);
    const Listener v6(net.outside, "fd78::2", 8000);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == ECONNREFUSED);
    CHECK(connect_to(net.a.place, "fd78::2", 8000) == ECONNREFUSED);
    CHECK(datagram_refusal(net.a.place, "192.0.2.2", 9).error == EHOSTUNREACH);
    CHECK(table.refused(rules::Reason::policy).value() >= 3);
    // The other one goes on as before.
    CHECK(connect_to(net.b.place, "192.0.2.2", 8000) == 0);
}

TEST_CASE("a learned address is open to its sandbox alone, until it expires") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.add(net.b.guarded(), names_only(), keep_all));
    const Listener v4(net.outside, "192.0.2.2", 8000);
    const Listener v6(net.outside, "fd78::2", 8000);
    must(table.learn("egra", "x.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 4s));
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
    CHECK(connect_to(net.a.place, "fd78::2", 8000) == 0);
    CHECK(connect_to(net.b.place, "192.0.2.2", 8000) == ECONNREFUSED);
    int waited = 0;
    while (connect_to(net.a.place, "192.0.2.2", 8000) == 0 && waited++ < 1000)
        std::this_thread::sleep_for(20ms);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == ECONNREFUSED);
    table.expire();
    CHECK(table.learned().size() == 0);
}
