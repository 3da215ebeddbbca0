#include "unit/egress/rules/host_topology.hpp"
#include "unit/egress/rules/open_connection.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::Scope;

namespace {

rules::PolicyRules everything() {
    rules::PolicyRules policy;
    policy.allow_by_default = true;
    policy.refuse_private = false;
    return policy;
}

}  // namespace

TEST_CASE("what is allowed by default is open, and denied prefixes are not") {
    EgressTopology net;
    net.add_outside("198.51.100.7");
    net.add_outside("2001:db8::7");
    auto table = net.open();
    auto policy = everything();
    policy.denied = {allow("198.51.100.0", 24), allow("2001:db8::", 32)};
    must(table.add(net.a.guarded(), policy, keep_all));
    for (const char* address : {"192.0.2.2", "198.51.100.7", "fd78::2", "2001:db8::7"}) {
        INFO(address);
        const Listener listener(net.outside, address, 8000);
        const bool denied = address[2] == '8' || address[0] == '2';
        CHECK(connect_to(net.a.place, address, 8000) == (denied ? ECONNREFUSED : 0));
    }
}

TEST_CASE("literal addresses are open on the ports that a rule names") {
    EgressTopology net;
    auto table = net.open();
    auto policy = names_only();
    policy.allowed = {allow("192.0.2.0", 24, Scope(IPPROTO_TCP, 8000, 8001)),
                      allow("fd78::2", 128, Scope(IPPROTO_UDP, 9000))};
    must(table.add(net.a.guarded(), policy, keep_all));
    const Listener inside(net.outside, "192.0.2.2", 8001);
    const Listener beyond(net.outside, "192.0.2.2", 8002);
    const Receiver udp(net.outside, "fd78::2", 9000);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8001) == 0);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8002) == ECONNREFUSED);
    send_datagram(net.a.place, net.a.v6, "fd78::2", 9000, "hello");
    CHECK(udp.next() == "hello");
}

TEST_CASE("a name that stands for a private address opens nothing, unless a rule names it") {
    EgressTopology net;
    for (const char* address : {"169.254.169.254", "10.9.9.9", "192.168.7.7", "fd99::9"})
        net.add_outside(address);
    net.add_outside("198.51.100.7");
    auto table = net.open();
    rules::PolicyRules policy;
    policy.learned_scopes = {Scope()};
    policy.allowed = {allow("10.9.0.0", 16, Scope(IPPROTO_TCP, 8000)), allow("0.0.0.0", 0)};
    must(table.add(net.a.guarded(), policy, keep_all));
    must(table.learn("egra", "evil.test",
                     {ip("169.254.169.254"), ip("10.9.9.9"), ip("192.168.7.7"), ip("fd99::9")},
                     {Scope()}, 60s));
    const auto reach = [&](const std::string& address, int port) {
        const Listener listener(net.outside, address, port);
        return connect_to(net.a.place, address, port);
    };
    CHECK(reach("169.254.169.254", 80) == ECONNREFUSED);
    CHECK(reach("192.168.7.7", 8000) == ECONNREFUSED);
    CHECK(reach("fd99::9", 8000) == ECONNREFUSED);
    CHECK(reach("10.9.9.9", 8001) == ECONNREFUSED);
    CHECK(reach("10.9.9.9", 8000) == 0);
    CHECK(reach("198.51.100.7", 8000) == 0);
    CHECK(table.refused(rules::Reason::private_range).value() == 4);
}

TEST_CASE("DNS over TLS, DNS over HTTPS and QUIC do not pass") {
    EgressTopology net;
    net.add_outside("198.51.100.7");
    auto table = net.open();
    auto policy = everything();
    must(table.add(net.a.guarded(), policy, keep_all));
    const Listener dot(net.outside, "192.0.2.2", 853);
    CHECK(connect_to(net.a.place, "192.0.2.2", 853) == ECONNREFUSED);
    CHECK(datagram_refusal(net.a.place, "192.0.2.2", 853).error == EHOSTUNREACH);

    const Listener https(net.outside, "192.0.2.2", 443);
    const Listener other(net.outside, "198.51.100.7", 443);
    CHECK(connect_to(net.a.place, "192.0.2.2", 443) == 0);
    policy.block_doh = true;
    policy.doh_servers = {rules::Prefix(ip("192.0.2.2"))};
    must(table.set_policy("egra", policy, keep_all));
    CHECK(connect_to(net.a.place, "192.0.2.2", 443) == ECONNREFUSED);
    CHECK(connect_to(net.a.place, "198.51.100.7", 443) == 0);
    policy.doh_servers.clear();
    must(table.set_policy("egra", policy, keep_all));
    CHECK(connect_to(net.a.place, "198.51.100.7", 443) == ECONNREFUSED);

    const Receiver quic(net.outside, "192.0.2.2", 443);
    must(table.set_policy("egra", everything(), keep_all));
    send_datagram(net.a.place, net.a.v4, "192.0.2.2", 443, "quic");
    CHECK(quic.next() == "quic");
    policy = everything();
    policy.intercepted_ports = {443};
    must(table.set_policy("egra", policy, keep_all));
    CHECK(datagram_refusal(net.a.place, "192.0.2.2", 443).error == EHOSTUNREACH);
    CHECK(table.refused(rules::Reason::dns_over_tls).value() == 2);
    CHECK(table.refused(rules::Reason::doh).value() == 2);
    CHECK(table.refused(rules::Reason::quic).value() == 1);
}

TEST_CASE("queries for names go to our own server, whichever server they were meant for") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    for (const char* server : {"192.0.2.2", "9.9.9.9", "2001:db8::53"}) {
        INFO(server);
        const bool v6 = ip(server).is_v6();
        const std::string gateway = v6 ? "fd77::1" : "10.77.0.1";
        // Nobody listens yet: a quick refusal.
        CHECK(connect_to(net.a.place, server, 53) == ECONNREFUSED);
        const Receiver udp(net.host, gateway, 5353);
        const Listener tcp(net.host, gateway, 5353);
        send_datagram(net.a.place, v6 ? net.a.v6 : net.a.v4, server, 53, "query");
        CHECK(udp.next() == "query");
        CHECK(connect_to(net.a.place, server, 53) == 0);
        CHECK(tcp.accept_peer() == (v6 ? net.a.v6 : net.a.v4));
        // But not by its own port, and no other port of the host either.
        CHECK(connect_to(net.a.place, gateway, 5353) == ECONNREFUSED);
    }
    const Listener on_host(net.host, "192.0.2.1", 8000);
    CHECK(connect_to(net.a.place, "192.0.2.1", 8000) == ECONNREFUSED);
    CHECK(connect_to(net.b.place, "192.0.2.1", 8000) == 0);
}

TEST_CASE("a query that came in fragments is judged as a whole") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    const Receiver server(net.host, "10.77.0.1", 5353);
    const Receiver outside(net.outside, "192.0.2.2", 9000);
    const std::string large(4000, 'x');
    send_datagram(net.a.place, net.a.v4, "9.9.9.9", 53, large);
    CHECK(server.next() == large.substr(0, 256));
    send_datagram(net.a.place, net.a.v4, "192.0.2.2", 9000, large);
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 60s));
    send_datagram(net.a.place, net.a.v4, "192.0.2.2", 9000, "whole");
    CHECK(outside.next() == "whole");
}

TEST_CASE("what is to be intercepted goes to the interceptor, if it is allowed at all") {
    EgressTopology net;
    net.add_outside("198.51.100.7");
    net.add_outside("203.0.113.9");
    auto table = net.open();
    auto policy = names_only();
    policy.intercepted_ports = {80, 443};
    policy.denied = {allow("203.0.113.0", 24)};
    policy.allowed = {allow("198.51.100.7", 32)};
    must(table.add(net.a.guarded(), policy, keep_all));
    must(table.learn("egra", "x.test", {ip("192.0.2.2"), ip("fd78::2"), ip("203.0.113.9")},
                     {Scope()}, 60s));
    // No interceptor yet: nothing gets past it either.
    const Listener direct(net.outside, "192.0.2.2", 443);
    CHECK(connect_to(net.a.place, "192.0.2.2", 443) == ECONNREFUSED);
    const Listener interceptor(net.host, "10.77.0.1", 8443);
    const Listener interceptor6(net.host, "fd77::1", 8443);
    CHECK(connect_to(net.a.place, "192.0.2.2", 443) == 0);
    CHECK(interceptor.accept_peer() == net.a.v4);
    CHECK(connect_to(net.a.place, "192.0.2.2", 80) == 0);
    CHECK(interceptor.accept_peer() == net.a.v4);
    CHECK(connect_to(net.a.place, "fd78::2", 443) == 0);
    CHECK(interceptor6.accept_peer() == net.a.v6);
    // Denied, and never learned: refused. A literal address: direct. Another port: direct.
    CHECK(connect_to(net.a.place, "203.0.113.9", 443) == ECONNREFUSED);
    CHECK(connect_to(net.a.place, "9.9.9.9", 443) == ECONNREFUSED);
    const Listener literal(net.outside, "198.51.100.7", 443);
    CHECK(connect_to(net.a.place, "198.51.100.7", 443) == 0);
    CHECK(literal.accept_peer() == net.a.v4);
    const Listener other_port(net.outside, "192.0.2.2", 8000);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
    // The interceptor's own port is nobody's way to it.
    CHECK(connect_to(net.a.place, "10.77.0.1", 8443) == ECONNREFUSED);
}

TEST_CASE("connections that were open before the interceptor was asked for are cut") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 60s));
    const OpenConnection before(net.a.place, net.outside, "192.0.2.2", 443);
    const OpenConnection other(net.a.place, net.outside, "192.0.2.2", 8000);
    auto policy = names_only();
    policy.intercepted_ports = {443};
    const auto cut = table.set_policy("egra", policy, keep_all);
    must(cut);
    CHECK(cut->run().value() == 1);
    CHECK(before.send_error("past the interceptor") != 0);
    CHECK(other.carries("still"));
}

TEST_CASE("a sandbox holds no more connections than it may, and others are none the worse") {
    EgressTopology net;
    auto options = net.options();
    options.connections = 20;
    auto table = net.open(options);
    must(table.add(net.a.guarded(), everything(), keep_all));
    must(table.add(net.b.guarded(), everything(), keep_all));
    const Listener listener(net.outside, "192.0.2.2", 8000, 256);
    std::vector<UniqueFd> held;
    int refused = 0;
    for (int i = 0; i < 30; ++i) {
        held.push_back(start_connect(net.a.place, "192.0.2.2", 8000));
        wait_for(held.back().get(), POLLOUT);
        if (connect_state(held.back()) == ECONNREFUSED) ++refused;
    }
    CHECK(refused == 10);
    CHECK(connect_to(net.b.place, "192.0.2.2", 8000) == 0);
    CHECK(table.refused(rules::Reason::connections).value() == 10);
}

TEST_CASE("in quarantine nothing leaves, and what the host opened goes on") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), everything(), keep_all));
    const OpenConnection out(net.a.place, net.outside, "192.0.2.2", 8000);
    const OpenConnection from_host(net.host, net.a.place, net.a.v4, 8000);
    const Receiver names(net.host, "10.77.0.1", 5353);
    must(table.set_quarantine("egra", true));
    CHECK(out.send_error("after") == ECONNRESET);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8001) == ECONNREFUSED);
    CHECK(datagram_refusal(net.a.place, "9.9.9.9", 53).error == EHOSTUNREACH);
    CHECK(from_host.carries("still"));
    CHECK(table.refused(rules::Reason::quarantine).value() >= 3);
    must(table.set_quarantine("egra", false));
    const Listener listener(net.outside, "192.0.2.2", 8002);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8002) == 0);
}

TEST_CASE("a sandbox that was removed leaves nothing behind under its link's name") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.learn("egra", "x.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 300s));
    must(table.set_quarantine("egra", true));
    const auto cut = table.remove_sandbox("egra");
    must(cut);
    must(cut->run());
    CHECK(table.learned().size() == 0);
    CHECK_FALSE(table.guards("egra"));
    must(table.remove_sandbox("egra"));
    const Listener listener(net.outside, "192.0.2.2", 8000);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
    // The next by that name begins with nothing.
    must(table.add(net.a.guarded(), names_only(), keep_all));
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == ECONNREFUSED);
    must(table.learn("egra", "x.test", {ip("192.0.2.2")}, {Scope()}, 300s));
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
}
