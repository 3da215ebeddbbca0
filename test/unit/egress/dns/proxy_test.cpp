#include "dns_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

TEST_CASE("dns proxy: an allowed name is forwarded, learned, then answered") {
    ProxyFixture f;
    auto& server = f.serve(always_address("198.51.100.7", 100));
    auto scope = std::make_shared<VerdictScope>();
    f.gate->scope = scope;
    bool answered = false;
    f.sink->meanwhile = [&]() -> Awaitable<void> {
        CHECK_FALSE(answered);
        co_return;
    };
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string reply = co_await ask_udp(f.endpoint, query("Web.Example"));
        answered = true;
        CHECK(addresses(reply) == std::vector<std::string>{"198.51.100.7"});
        CHECK(reply.substr(12, 13) == wire("Web.Example"));
        CHECK(static_cast<unsigned char>(reply[0]) == 0x42);
    });
    REQUIRE(f.sink->calls.size() == 1);
    const LearnCall& call = f.sink->calls.front();
    CHECK(call.client == 7);
    CHECK(call.name == "web.example");
    CHECK(call.addresses ==
          std::vector<LearnedAddress>{{address("198.51.100.7"), std::chrono::seconds(160)}});
    CHECK(call.scope == scope);
    REQUIRE(server.asked().size() == 1);
    CHECK(server.asked()[0].query.udp_size == 1232);
}

TEST_CASE("dns proxy: a denied name is answered at once, with the rule, and observed") {
    ProxyFixture f;
    auto& server = f.serve(always_address("198.51.100.7"));
    f.gate->allow_all = false;
    SECTION("as not existing") {}
    SECTION("as refused") {
        f.settings.denial = DenialAnswer::refused;
    }
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string reply = co_await ask_udp(f.endpoint, query("evil.example"));
        const auto code = f.settings.denial == DenialAnswer::refused ? 5 : 3;
        CHECK(parsed(reply).code == code);
        CHECK(parsed(reply).authorities.empty());
        CHECK(explanation(reply).code == 15);
        CHECK(explanation(reply).text == "no rule allows it");
        const std::string plain =
            co_await ask_udp(f.endpoint, query("evil.example", codec::kTypeA, 0));
        CHECK(parsed(plain).code == code);
        CHECK(explanation(plain).code == -1);
    });
    CHECK(server.asked().empty());
    CHECK(f.sink->calls.empty());
    REQUIRE(f.denials.size() == 2);
    CHECK(f.denials[0].client == 7);
    CHECK(f.denials[0].name == "evil.example");
    CHECK(f.denials[0].type == codec::kTypeA);
    CHECK(f.denials[0].reason == "no rule allows it");
    CHECK(f.statistics().denied == 2);
}

TEST_CASE("dns proxy: addresses that cannot be opened are not told") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.sink->status = Error(ErrorCode::io, "no room");
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        for (int i = 0; i < 2; ++i) {
            const std::string reply = co_await ask_udp(f.endpoint, query("web.example"));
            CHECK(parsed(reply).code == 2);
        }
        f.sink->status = Status();
        const std::string reply = co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(addresses(reply).size() == 1);
    });
    CHECK(f.sink->calls.size() == 3);
    CHECK(f.statistics().learn_failures == 2);
}

TEST_CASE("dns proxy: a second question is answered from the cache, policy is asked again") {
    ProxyFixture f;
    auto& server = f.serve(always_address("198.51.100.7"));
    ClientId client = 1;
    f.start([&](const Arrival&) { return std::optional<ClientId>(client); });
    f.loop.run([&]() -> Awaitable<void> {
        co_await ask_udp(f.endpoint, query("web.example"));
        const std::string again = co_await ask_udp(f.endpoint, query("WEB.example"));
        CHECK(addresses(again).size() == 1);
        CHECK(again.substr(12, 13) == wire("WEB.example"));
        CHECK(f.sink->calls.size() == 1);
        client = 2;
        co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(f.sink->calls.size() == 2);
        CHECK(f.sink->calls.back().client == 2);
        client = 3;
        f.gate->rules[{3, "web.example"}] = false;
        const std::string denied = co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(parsed(denied).code == 3);
    });
    CHECK(server.asked().size() == 1);
    CHECK(f.statistics().cache_hits == 2);
}

TEST_CASE("dns proxy: addresses are learned again under another generation of policy") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        co_await ask_udp(f.endpoint, query("web.example"));
        co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(f.sink->calls.size() == 1);
        f.gate->generation = 2;
        co_await ask_udp(f.endpoint, query("web.example"));
        co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(f.sink->calls.size() == 2);
        f.proxy->resolver().forget(7);
        co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(f.sink->calls.size() == 3);
    });
}

TEST_CASE("dns proxy: permission lost while an upstream is asked counts") {
    ProxyFixture f;
    f.serve([&](const Asked& asked) {
        f.gate->allow_all = false;
        return always_address("198.51.100.7")(asked);
    });
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string reply = co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(parsed(reply).code == 3);
    });
    CHECK(f.sink->calls.empty());
}

TEST_CASE("dns proxy: permission lost while addresses are learned counts") {
    ProxyFixture f;
    f.serve(always_address("198.51.100.7"));
    f.sink->meanwhile = [&]() -> Awaitable<void> {
        f.gate->allow_all = false;
        co_return;
    };
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string reply = co_await ask_udp(f.endpoint, query("web.example"));
        CHECK(parsed(reply).code == 3);
    });
}

TEST_CASE("dns proxy: equal questions are asked once") {
    ProxyFixture f;
    auto& server = f.serve(always_address("198.51.100.7"));
    f.start();
    int answered = 0;
    f.loop.run([&]() -> Awaitable<void> {
        for (std::uint16_t i = 0; i < 20; ++i) {
            net::spawn(
                f.loop.executor(),
                [](ProxyFixture& fixture, int& count, std::uint16_t id) -> Awaitable<void> {
                    const std::string reply = co_await ask_udp(
                        fixture.endpoint, query("web.example", codec::kTypeA, 1232, id));
                    const auto read = codec::parse_reply(reply);
                    if (read && read->id == id && read->answers.size() == 1) ++count;
                }(f, answered, i),
                "a client");
        }
        while (answered < 20)
            co_await net::sleep_for(std::chrono::milliseconds(2));
    });
    CHECK(server.asked().size() == 1);
    CHECK(f.sink->calls.size() >= 1);
}

TEST_CASE("dns proxy: the rules on results are the contract's") {
    ProxyFixture f;
    std::uint16_t first = 0;
    auto& one = f.serve([&](const Asked& asked) -> std::vector<std::string> {
        if (asked.query.question.name.empty()) return {asked.reply({})};
        return {asked.reply({}, first)};
    });
    auto& two = f.serve(always_address("198.51.100.7"));
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        first = 0;
        const std::string empty = co_await ask_udp(f.endpoint, query("empty.example"));
        CHECK(parsed(empty).code == 0);
        CHECK(parsed(empty).answers.empty());
        first = 3;
        const std::string none = co_await ask_udp(f.endpoint, query("none.example"));
        CHECK(parsed(none).code == 3);
        CHECK(explanation(none).code == -1);
        CHECK(two.asked().empty());
        first = 2;
        const std::string failed = co_await ask_udp(f.endpoint, query("failed.example"));
        CHECK(addresses(failed).size() == 1);
        first = 5;
        const std::string refused = co_await ask_udp(f.endpoint, query("refused.example"));
        CHECK(addresses(refused).size() == 1);
        CHECK(two.asked().size() == 2);
        two.script(
            [](const Asked& asked) -> std::vector<std::string> { return {asked.reply({}, 2)}; });
        const std::string lost = co_await ask_udp(f.endpoint, query("lost.example"));
        CHECK(parsed(lost).code == 2);
        CHECK(explanation(lost).code == 22);
    });
    CHECK(one.asked().size() == 5);
    CHECK(f.statistics().failed == 1);
    CHECK(f.statistics().forwarded_seconds.count() == 5);
}

TEST_CASE("dns proxy: a silent upstream is passed over, and known to be so later") {
    ProxyFixture f;
    f.settings.upstream.timeout = std::chrono::milliseconds(300);
    auto& silent = f.serve([](const Asked&) { return std::vector<std::string>(); });
    f.serve(always_address("198.51.100.7"));
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        const std::string reply = co_await ask_udp(f.endpoint, query("a.example"));
        CHECK(addresses(reply).size() == 1);
        while (f.proxy->resolver().health().healthy()[0])
            co_await net::sleep_for(std::chrono::milliseconds(2));
        const std::size_t before = silent.asked().size();
        const std::string later = co_await ask_udp(f.endpoint, query("b.example"));
        CHECK(addresses(later).size() == 1);
        CHECK(silent.asked().size() == before);
    });
}

TEST_CASE("dns proxy: with no healthy upstream all are asked") {
    ProxyFixture f;
    f.settings.upstream.timeout = std::chrono::milliseconds(300);
    auto& server = f.serve([](const Asked&) { return std::vector<std::string>(); });
    f.start();
    f.loop.run([&]() -> Awaitable<void> {
        while (f.proxy->resolver().health().healthy()[0])
            co_await net::sleep_for(std::chrono::milliseconds(2));
        server.script(always_address("198.51.100.7"));
        const std::string reply = co_await ask_udp(f.endpoint, query("a.example"));
        CHECK(addresses(reply).size() == 1);
    });
}

TEST_CASE("dns proxy: settings out of range are refused with what is wrong") {
    Loop loop;
    Neighbours neighbours;
    ProxySettings settings;
    CHECK_FALSE(Proxy::create(loop.executor(), settings, neighbours));
    neighbours.gate = std::make_shared<TestGate>();
    CHECK_FALSE(Proxy::create(loop.executor(), settings, neighbours));
    settings.upstream.servers.emplace_back(udp::endpoint(address("127.0.0.1"), 53));
    CHECK(Proxy::create(loop.executor(), settings, neighbours));
    settings.upstream.probe = "a..b";
    CHECK_FALSE(Proxy::create(loop.executor(), settings, neighbours));
    settings.upstream.probe = ".";
    settings.upstream.timeout = std::chrono::seconds(121);
    CHECK_FALSE(Proxy::create(loop.executor(), settings, neighbours));
    settings.upstream.timeout = std::chrono::seconds(120);
    settings.upstream.probe_interval = std::chrono::seconds(0);
    CHECK_FALSE(Proxy::create(loop.executor(), settings, neighbours));
}
