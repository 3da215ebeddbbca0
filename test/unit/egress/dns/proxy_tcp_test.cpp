#include "dns_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

TEST_CASE("dns proxy: long answers come whole over TCP, cut over UDP") {
    ProxyFixture f;
    f.serve([](const Asked& asked) -> std::vector<std::string> {
        std::vector<codec::ResourceRecord> answers;
        for (int i = 1; i <= 200; ++i) {
            answers.push_back(
                address_record(asked.query.question.name, "198.51.100." + std::to_string(i)));
        }
        std::string reply = asked.reply(answers);
        if (asked.tcp) return {reply};
        reply = asked.reply({});
        reply[2] = static_cast<char>(0x82);
        return {reply};
    });
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string cut = co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(parsed(cut).truncated);
        const std::string whole = co_await ask_tcp(f.endpoint, query("web.example"));
        CHECK(addresses(whole).size() == 200);
        const std::string roomy =
            co_await ask_udp(f.endpoint, query("web.example", codec::kTypeA, 4096));
        CHECK(addresses(roomy).size() == 200);
    });
    CHECK(f.statistics().truncated == 1);
    CHECK(f.sink->calls.size() == 1);
}

TEST_CASE("dns proxy: a TCP connection carries many queries, and is one of a limited number") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.settings.clients.connections = 1;
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        auto connected =
            co_await net::connect_tcp("127.0.0.1", f.endpoint.port(), std::chrono::seconds(5));
        REQUIRE(connected);
        const std::string both = codec::framed(query("a.example", codec::kTypeA, 1232, 1)) +
                                 codec::framed(query("b.example", codec::kTypeA, 1232, 2));
        CHECK(co_await net::write_all(**connected, both));
        for (const std::uint16_t id : {1, 2}) {
            auto reply = co_await codec::read_framed(**connected);
            REQUIRE(reply);
            CHECK(parsed(*reply).id == id);
        }
        CHECK((co_await ask_tcp(f.endpoint, query("a.example"))).empty());
        (*connected)->close();
        std::string reply;
        while (reply.empty())
            reply = co_await ask_tcp(f.endpoint, query("a.example"));
        CHECK(addresses(reply).size() == 1);
    });
}

TEST_CASE("dns proxy: a query over TCP does not wait for the one before it") {
    ProxyFixture f;
    f.settings.upstream.timeout = std::chrono::seconds(10);
    f.serve([](const Asked& asked) -> std::vector<std::string> {
        if (asked.query.question.name == "slow.example") return {};
        return always_address("198.51.100.7")(asked);
    });
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        auto connected =
            co_await net::connect_tcp("127.0.0.1", f.endpoint.port(), std::chrono::seconds(5));
        REQUIRE(connected);
        const std::string both = codec::framed(query("slow.example", codec::kTypeA, 1232, 1)) +
                                 codec::framed(query("quick.example", codec::kTypeA, 1232, 2));
        CHECK(co_await net::write_all(**connected, both));
        auto reply = co_await codec::read_framed(**connected);
        REQUIRE(reply);
        CHECK(parsed(*reply).id == 2);
    });
}

TEST_CASE("dns proxy: who asks over TCP and never reads is cut off") {
    ProxyFixture f;
    f.settings.udp_answer = 65535;
    f.serve([](const Asked& asked) -> std::vector<std::string> {
        if (!asked.tcp) {
            std::string cut = asked.reply({});
            cut[2] = static_cast<char>(0x82);
            return {cut};
        }
        std::vector<codec::ResourceRecord> answers;
        for (int i = 0; i < 200; ++i) {
            answers.push_back(record(asked.query.question.name, codec::kTypeTxt,
                                     '\xff' + std::string(255, static_cast<char>(i))));
        }
        return {asked.reply(answers)};
    });
    f.settings.clients.connections = 1;
    f.settings.clients.connection_idle = std::chrono::seconds(1);
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string text = query("long.example", codec::kTypeTxt);
        CHECK((co_await ask_tcp(f.endpoint, text)).size() > 50'000);
        auto connected =
            co_await net::connect_tcp("127.0.0.1", f.endpoint.port(), std::chrono::seconds(5));
        REQUIRE(connected);
        std::string many;
        for (int i = 0; i < 1000; ++i)
            many += codec::framed(text);
        CHECK(co_await net::write_all(**connected, many));
        // Its place is free again, though it stays connected.
        std::string reply;
        while (reply.empty())
            reply = co_await ask_tcp(f.endpoint, query("long.example", codec::kTypeTxt));
        CHECK(parsed(reply).answers.size() == 200);
    });
}
