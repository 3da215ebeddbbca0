#include "dns_fixture.hpp"

#include <net/if.h>

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

namespace {

Awaitable<int> code_of(ProxyFixture& f, std::string message) {
    const std::string reply = co_await ask_udp(f.endpoint, std::move(message));
    co_return parsed(reply).code;
}

}  // namespace

TEST_CASE("dns proxy: types that are not listed are refused and observed") {
    ProxyFixture f;
    auto& server = f.serve(always_address("198.51.100.7"));
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        for (const std::uint16_t type : {255, 252, 251, 10, 65280}) {
            const std::string reply = co_await ask_udp(f.endpoint, query("web.example", type));
            CHECK(parsed(reply).code == 5);
            CHECK(explanation(reply).code == 18);
        }
        std::string chaos = query("version.bind", codec::kTypeTxt, 0);
        chaos.back() = 3;
        CHECK(co_await code_of(f, chaos) == 5);
        CHECK(co_await code_of(f, query("web.example", codec::kTypeMx)) == 0);
    });
    CHECK(server.asked().size() == 1);
    REQUIRE(f.denials.size() == 6);
    CHECK(f.denials[0].reason == "query type 255 is not allowed");
}

TEST_CASE("dns proxy: names that look like carried data are refused, but not those named exactly") {
    ProxyFixture f;
    auto& server = f.serve(always_address("198.51.100.7"));
    f.settings.names.distinct = 3;
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string tunnel = std::string(60, 'a') + ".example.com";
        const std::string reply = co_await ask_udp(f.endpoint, query(tunnel));
        CHECK(parsed(reply).code == 3);
        CHECK(explanation(reply).code == 18);
        CHECK(server.asked().empty());
        for (const char* name : {"1.x.com", "2.x.com", "3.x.com", "1.x.com"})
            CHECK(co_await code_of(f, query(name)) == 0);
        CHECK(co_await code_of(f, query("4.x.com")) == 3);
        CHECK(co_await code_of(f, query("4.y.com")) == 0);
        f.gate->exact = true;
        CHECK(co_await code_of(f, query(tunnel)) == 0);
        CHECK(co_await code_of(f, query("4.x.com")) == 0);
    });
    CHECK(f.denials.size() == 2);
}

TEST_CASE("dns proxy: names beyond the limit stay answered from the cache") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.settings.names.distinct = 1;
    ClientId client = 1;
    f.start([&](const Arrival&) { return std::optional<ClientId>(client); });
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await code_of(f, query("1.x.com")) == 0);
        CHECK(co_await code_of(f, query("2.x.com")) == 3);
        client = 2;
        CHECK(co_await code_of(f, query("2.x.com")) == 0);
        client = 1;
        CHECK(co_await code_of(f, query("2.x.com")) == 0);
    });
}

TEST_CASE("dns proxy: a client that asks too much is refused, others are not") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.settings.clients.queries_per_second = 0.001;
    f.settings.clients.queries_burst = 3;
    ClientId client = 1;
    f.start([&](const Arrival&) { return std::optional<ClientId>(client); });
    f.loop.run([&]() -> Awaitable<void> {
        for (int i = 0; i < 3; ++i)
            CHECK(co_await code_of(f, query("web.example")) == 0);
        CHECK(co_await code_of(f, query("web.example")) == 5);
        client = 2;
        CHECK(co_await code_of(f, query("web.example")) == 0);
    });
}

TEST_CASE("dns proxy: what must be sent on has a rate of its own") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.settings.clients.forwarded_per_second = 0.001;
    f.settings.clients.forwarded_burst = 1;
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        for (int i = 0; i < 3; ++i)
            CHECK(co_await code_of(f, query("web.example")) == 0);
        CHECK(co_await code_of(f, query("other.example")) == 5);
    });
}

TEST_CASE("dns proxy: queries that wait are bounded for each client") {
    ProxyFixture f;
    f.serve([](const Asked&) { return std::vector<std::string>(); });
    f.settings.clients.in_flight = 2;
    f.settings.upstream.timeout = std::chrono::milliseconds(1000);
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        udp::socket socket(f.loop.executor(), udp::v4());
        socket.connect(f.endpoint);
        for (const char* name : {"a.example", "b.example", "c.example", "d.example"})
            co_await socket.async_send(asio::buffer(query(name)), kAsTuple);
        while (f.statistics().overload_dropped < 2)
            co_await net::sleep_for(std::chrono::milliseconds(2));
        // Over TCP there is no dropping without a word.
        const std::string reply = co_await ask_tcp(f.endpoint, query("e.example"));
        CHECK(parsed(reply).code == 2);
        while (f.statistics().failed < 2)
            co_await net::sleep_for(std::chrono::milliseconds(5));
        CHECK(f.statistics().overload_dropped == 3);
    });
}

TEST_CASE("dns proxy: queries of nobody are dropped") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.start([](const Arrival&) { return std::optional<ClientId>(); });
    f.loop.run([&]() -> Awaitable<void> {
        CHECK((co_await ask_udp(f.endpoint, query("a.example"), std::chrono::milliseconds(50)))
                  .empty());
        CHECK((co_await ask_tcp(f.endpoint, query("a.example"))).empty());
    });
    CHECK(f.statistics().queries == 0);
}

TEST_CASE("dns proxy: malformed queries are answered as such or dropped, then it goes on") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string good = query("web.example");
        for (std::size_t size = 12; size < good.size(); ++size) {
            const std::string reply = co_await ask_udp(f.endpoint, good.substr(0, size));
            REQUIRE(reply.size() >= 12);
            CHECK((reply[3] & 0x0f) == 1);
        }
        std::string looped = good;
        looped[12] = static_cast<char>(0xc0);
        looped[13] = 12;
        CHECK(((co_await ask_udp(f.endpoint, looped))[3] & 0x0f) == 1);
        std::string notify = good;
        notify[2] = 0x20;
        CHECK(((co_await ask_udp(f.endpoint, notify))[3] & 0x0f) == 4);
        std::string newer = good;
        newer[newer.size() - 5] = 1;
        const std::string version = co_await ask_udp(f.endpoint, newer);
        CHECK(parsed(version).code == 16);
        CHECK((co_await ask_udp(f.endpoint, "tiny", std::chrono::milliseconds(30))).empty());
        CHECK((co_await ask_udp(f.endpoint, std::string(3000, '\1'))).size() == 12);
        CHECK(co_await code_of(f, good) == 0);
    });
}

TEST_CASE("dns proxy: names that lead inside only are refused, mixed ones are cleaned") {
    ProxyFixture f;
    f.serve([](const Asked& asked) -> std::vector<std::string> {
        const std::string& name = asked.query.question.name;
        if (name == "inner.example") {
            return {asked.reply(
                {address_record(name, "169.254.169.254"), address_record(name, "127.0.0.1")})};
        }
        if (name == "six.example") return {asked.reply({address_record(name, "::ffff:10.0.0.1")})};
        return {
            asked.reply({address_record(name, "10.0.0.1"), address_record(name, "198.51.100.1")})};
    });
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        for (int i = 0; i < 2; ++i) {
            const std::string inner = co_await ask_udp(f.endpoint, query("inner.example"));
            CHECK(parsed(inner).code == 3);
            CHECK(explanation(inner).code == 15);
            CHECK(explanation(inner).text.find("rebinding") != std::string::npos);
        }
        CHECK(co_await code_of(f, query("six.example", codec::kTypeAaaa)) == 3);
        CHECK(f.sink->calls.empty());
        const std::string mixed = co_await ask_udp(f.endpoint, query("mixed.example"));
        CHECK(addresses(mixed) == std::vector<std::string>{"198.51.100.1"});
        REQUIRE(f.sink->calls.size() == 1);
        CHECK(f.sink->calls[0].addresses.size() == 1);
        // Allowed later, without asking upstream again.
        f.gate->allowed_inner = {"10.0.0.1"};
        ++f.gate->generation;
        const std::string both = co_await ask_udp(f.endpoint, query("mixed.example"));
        CHECK(addresses(both) == std::vector<std::string>{"10.0.0.1", "198.51.100.1"});
        CHECK(f.sink->calls.back().addresses.size() == 2);
    });
    CHECK(f.denials.size() == 3);
    CHECK(f.statistics().rebinding_removed == 6);
}

TEST_CASE("dns proxy: aliases are judged, from the cache too") {
    ProxyFixture f;
    f.serve([](const Asked& asked) -> std::vector<std::string> {
        return {asked.reply({alias_record("web.example", "cdn.example"),
                             address_record("cdn.example", "198.51.100.1")})};
    });
    f.gate->chain_scope = std::make_shared<VerdictScope>();
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string reply = co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(addresses(reply).size() == 1);
        CHECK(f.sink->calls[0].name == "web.example");
        CHECK(f.sink->calls[0].scope == f.gate->chain_scope);
        CHECK(f.gate->chains.front() == std::vector<std::string>{"web.example", "cdn.example"});
        f.gate->denied_aliases = {"cdn.example"};
        const std::string denied = co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(parsed(denied).code == 3);
        CHECK(explanation(denied).text == "alias denied");
    });
}

TEST_CASE("dns proxy: loops of aliases end as a failure") {
    ProxyFixture f;
    f.serve([](const Asked& asked) -> std::vector<std::string> {
        return {asked.reply(
            {alias_record("a.example", "b.example"), alias_record("b.example", "a.example")})};
    });
    f.start();
    f.loop.run([&]() -> Awaitable<void> { CHECK(co_await code_of(f, query("a.example")) == 2); });
}

TEST_CASE("dns proxy: replies leave from the address asked, and arrivals tell the interface") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    std::vector<Arrival> arrivals;
    const std::string any = GENERATE(as<std::string>(), "0.0.0.0", "::");
    const std::string asked = any == "::" ? "::1" : "127.9.8.7";
    f.start(
        [&](const Arrival& arrival) {
            arrivals.push_back(arrival);
            return std::optional<ClientId>(1);
        },
        any);
    const udp::endpoint there(address(asked), f.endpoint.port());
    f.loop.run([&]() -> Awaitable<void> {
        // A connected socket takes replies from there only; the first waits for the upstream.
        for (int i = 0; i < 2; ++i)
            CHECK(addresses(co_await ask_udp(there, query("web.example"))).size() == 1);
        CHECK(addresses(co_await ask_tcp(there, query("web.example"))).size() == 1);
    });
    REQUIRE(arrivals.size() == 3);
    for (const Arrival& arrival : arrivals) {
        CHECK(arrival.local == address(asked));
        CHECK(arrival.peer.is_loopback());
        CHECK(arrival.peer_port != 0);
        CHECK(arrival.interface == ::if_nametoindex("lo"));
    }
    CHECK_FALSE(arrivals[0].tcp);
    CHECK(arrivals[2].tcp);
}

TEST_CASE("dns proxy: service records come without address hints") {
    ProxyFixture f;
    std::string data = std::string("\0\1\0", 3) + std::string("\0\1\0\3\2h2", 7) +
                       std::string("\0\4\0\4\12\0\0\1", 8);
    f.serve([&](const Asked& asked) -> std::vector<std::string> {
        return {asked.reply({record(asked.query.question.name, codec::kTypeHttps, data)})};
    });
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const auto reply = parsed(co_await ask_udp(f.endpoint, query("w.example", 65)));
        REQUIRE(reply.answers.size() == 1);
        CHECK(reply.answers[0].data == data.substr(0, 10));
    });
    CHECK(f.sink->calls.empty());
}

TEST_CASE("dns proxy: answers without a lifetime are asked for each time") {
    ProxyFixture f;
    auto& server = f.serve(always_address("198.51.100.7", 0));
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        for (int i = 0; i < 2; ++i)
            CHECK(co_await code_of(f, query("web.example")) == 0);
    });
    CHECK(server.asked().size() == 2);
    REQUIRE(f.sink->calls.size() == 2);
    CHECK(f.sink->calls[0].addresses[0].lifetime == std::chrono::seconds(60));
}

TEST_CASE("dns proxy: lifetimes of learned addresses are those of the contract") {
    ProxyFixture f;
    f.settings.cache.max_ttl = std::chrono::seconds(100'000);
    std::uint32_t ttl = 0;
    f.serve([&](const Asked& asked) { return always_address("198.51.100.7", ttl)(asked); });
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        int name = 0;
        for (const std::uint32_t each : {0U, 1U, 299U, 300U, 301U, 86400U, 0x7fffffffU}) {
            ttl = each;
            co_await ask_udp(f.endpoint, query("n" + std::to_string(name++) + ".example"));
        }
    });
    std::vector<long> lifetimes;
    for (const LearnCall& call : f.sink->calls)
        lifetimes.push_back(static_cast<long>(call.addresses.at(0).lifetime.count()));
    CHECK(lifetimes == std::vector<long>{60, 61, 359, 360, 360, 360, 360});
}
