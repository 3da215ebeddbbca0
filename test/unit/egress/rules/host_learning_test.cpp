#include "unit/egress/rules/host_topology.hpp"
#include "unit/egress/rules/open_connection.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::Scope;

namespace {

bool keep_none(const std::string&, const Scope&) {
    return false;
}

rules::PolicyRules https_and_a_range() {
    auto policy = names_only();
    policy.learned_scopes = {Scope(IPPROTO_TCP, 443), Scope(IPPROTO_TCP, 8000, 8010)};
    return policy;
}

/// Whether the address is open for that long, asked again and again.
bool stays_open(const EgressTopology& net, std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        if (connect_to(net.a.place, "192.0.2.2", 8000) != 0) return false;
        std::this_thread::sleep_for(10ms);
    }
    return true;
}

}  // namespace

TEST_CASE("an address learned for some ports is open on those alone") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), https_and_a_range(), keep_all));
    const Listener https(net.outside, "192.0.2.2", 443);
    const Listener low(net.outside, "192.0.2.2", 8000);
    const Listener high(net.outside, "192.0.2.2", 8010);
    const Listener beyond(net.outside, "192.0.2.2", 8011);
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope(IPPROTO_TCP, 8000, 8010)}, 60s));
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8010) == 0);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8011) == ECONNREFUSED);
    CHECK(connect_to(net.a.place, "192.0.2.2", 443) == ECONNREFUSED);
    CHECK(datagram_refusal(net.a.place, "192.0.2.2", 8000).error == EHOSTUNREACH);
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope(IPPROTO_TCP, 443)}, 60s));
    CHECK(connect_to(net.a.place, "192.0.2.2", 443) == 0);
    const auto unknown =
        table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope(IPPROTO_TCP, 22)}, 60s);
    CHECK_FALSE(unknown.has_value());
}

TEST_CASE("to learn an address again makes it last longer, and never shorter") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    const Listener listener(net.outside, "192.0.2.2", 8000, 1024);
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 1s));
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 1s));
    CHECK(stays_open(net, 1500ms));
}

TEST_CASE("to learn an address again for the same time begins that time anew") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    const Listener listener(net.outside, "192.0.2.2", 8000, 1024);
    for (int turn = 0; turn < 4; ++turn) {
        must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 3s));
        CHECK(stays_open(net, 900ms));
    }
}

TEST_CASE("a name that lost its permission takes its open connections along, of TCP and UDP") {
    EgressTopology net;
    net.add_outside("198.51.100.7");
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.learn("egra", "good.test", {ip("198.51.100.7")}, {Scope()}, 300s));
    must(table.learn("egra", "bad.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 300s));
    const OpenConnection good(net.a.place, net.outside, "198.51.100.7", 8000);
    const OpenConnection bad(net.a.place, net.outside, "192.0.2.2", 8000);
    const OpenConnection bad6(net.a.place, net.outside, "fd78::2", 8000);
    const OpenDatagrams bad_udp(net.a.place, net.outside, "192.0.2.2", 9000);
    REQUIRE(bad.carries("before"));
    REQUIRE(bad_udp.carries("before"));

    const auto cut = table.revoke(
        "egra", [](const std::string& name, const Scope&) { return name != "bad.test"; });
    must(cut);
    // The rules alone do not end them: that is what cutting is for.
    CHECK(bad.carries("not yet cut"));
    CHECK(cut->run().value() == 3);
    CHECK(bad.send_error("after") == ECONNRESET);
    CHECK(bad6.send_error("after") == ECONNRESET);
    CHECK(bad_udp.send_error("after") == EHOSTUNREACH);
    CHECK(good.carries("still"));
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == ECONNREFUSED);
    CHECK(cut->run().value() == 0);
}

TEST_CASE("a connection that was cut does not come to life again from its other end") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.learn("egra", "bad.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    const OpenConnection bad(net.a.place, net.outside, "192.0.2.2", 8000);
    const auto cut = table.revoke("egra", keep_none);
    must(cut);
    REQUIRE(cut->run().value() == 1);
    bad.send_back("from outside");
    std::this_thread::sleep_for(300ms);
    CHECK(bad.send_error("after") == ECONNRESET);
}

TEST_CASE("learned addresses live through a change of policy as far as their names do") {
    EgressTopology net;
    net.add_outside("198.51.100.7");
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.learn("egra", "keeps.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    must(table.learn("egra", "loses.test", {ip("198.51.100.7")}, {Scope()}, 300s));
    const OpenConnection kept(net.a.place, net.outside, "192.0.2.2", 8000);
    const OpenConnection lost(net.a.place, net.outside, "198.51.100.7", 8000);

    // The new policy knows names on one port only, but what was learned of others stays.
    auto policy = https_and_a_range();
    const auto cut = table.set_policy(
        "egra", policy, [](const std::string& name, const Scope&) { return name == "keeps.test"; });
    must(cut);
    CHECK(cut->run().value() == 1);
    CHECK(kept.carries("still"));
    CHECK(lost.send_error("after") == ECONNRESET);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
    CHECK(connect_to(net.a.place, "198.51.100.7", 8000) == ECONNREFUSED);
}

TEST_CASE("policies change under open connections and new ones without a single refusal") {
    EgressTopology net;
    auto table = net.open();
    auto policy = names_only();
    must(table.add(net.a.guarded(), policy, keep_all));
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    const OpenConnection open(net.a.place, net.outside, "192.0.2.2", 8000);
    const Listener listener(net.outside, "192.0.2.2", 8001);
    std::atomic<bool> done = false;
    std::atomic<int> refused = 0;
    std::thread changes([&] {
        for (unsigned turn = 0; turn < 150; ++turn) {
            policy.denied = {allow("203.0.113." + std::to_string(turn), 32)};
            const auto cut = table.set_policy("egra", policy, keep_all);
            if (!cut || cut->run().value() != 0) ++refused;
        }
        done = true;
    });
    int connections = 0;
    while (!done) {
        if (connect_to(net.a.place, "192.0.2.2", 8001) != 0)
            ++refused;
        else
            static_cast<void>(listener.accept());
        // Each change looks at all that the kernel remembers of them.
        if (++connections > 2'000) std::this_thread::sleep_for(1ms);
    }
    changes.join();
    CHECK(refused == 0);
    CHECK(connections > 0);
    CHECK(open.carries("still"));
}
