#include "dns_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress::dns;
using namespace opensandbox::egress::dns::test;

namespace {

constexpr std::chrono::milliseconds kPatience{3000};

UpstreamQuestion question(std::string_view name, std::uint16_t type = codec::kTypeA) {
    UpstreamQuestion made;
    made.name = wire(name);
    made.type = type;
    return made;
}

/// Asks once and returns the first address of the answer, or what went wrong.
Awaitable<std::string> ask(std::shared_ptr<Upstream> upstream, std::string_view name,
                           std::chrono::milliseconds timeout = kPatience) {
    const UpstreamQuestion asked = question(name);
    auto answer = co_await Upstream::ask(upstream, asked, timeout);
    if (!answer) co_return "error: " + std::string(to_string(answer.error().code()));
    if (answer->answers.empty()) co_return "code " + std::to_string(answer->code);
    auto bytes = asio::ip::address_v4::bytes_type();
    std::copy_n(answer->answers[0].data.begin(), bytes.size(), bytes.begin());
    co_return asio::ip::address_v4(bytes).to_string();
}

std::string address_reply(const Asked& asked, const std::string& text) {
    return asked.reply({address_record(asked.query.question.name, text)});
}

std::string with_flag(std::string reply, std::size_t at, int flag) {
    reply[at] = static_cast<char>(static_cast<unsigned char>(reply[at]) | flag);
    return reply;
}

struct UpstreamFixture {
    explicit UpstreamFixture(ScriptedServer::Script script)
        : server(loop.executor(), std::move(script)) {}
    Loop loop;
    ScriptedServer server;
    UpstreamSettings settings;
    std::shared_ptr<Upstream> upstream() {
        return std::make_shared<Upstream>(loop.executor(), server.upstream(), settings);
    }
};

}  // namespace

TEST_CASE("dns upstream: replies with another id, question or direction are not taken") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        const std::string good = address_reply(asked, "198.51.100.1");
        std::string other_type = address_reply(asked, "203.0.113.2");
        other_type[asked.query.question_end - 3] = codec::kTypeTxt;
        const std::string evil = address_reply(asked, "203.0.113.1");
        std::string query_flag = evil;
        query_flag[2] = 0;
        Asked other = asked;
        other.message[13] = 'x';
        return {codec::with_id(evil, static_cast<std::uint16_t>(asked.query.id + 1)),
                other_type,
                query_flag,
                address_reply(other, "203.0.113.3"),
                evil.substr(0, 11),
                good};
    });
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await ask(f.upstream(), "a.example") == "198.51.100.1");
    });
    CHECK(f.server.connections() == 0);
}

TEST_CASE("dns upstream: who is drowned in replies that do not belong asks over TCP") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        if (asked.tcp) return {address_reply(asked, "198.51.100.1")};
        std::vector<std::string> flood;
        for (std::uint16_t i = 1; i < 100; ++i) {
            flood.push_back(codec::with_id(address_reply(asked, "203.0.113.1"),
                                           static_cast<std::uint16_t>(asked.query.id + i)));
        }
        return flood;
    });
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await ask(f.upstream(), "a.example") == "198.51.100.1");
    });
}

TEST_CASE("dns upstream: a cut answer comes whole over TCP, on one connection for many") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        if (asked.tcp) return {address_reply(asked, "198.51.100.1")};
        return {with_flag(asked.reply({}), 2, 0x02)};
    });
    const auto upstream = f.upstream();
    f.loop.run([&]() -> Awaitable<void> {
        for (int i = 0; i < 5; ++i)
            CHECK(co_await ask(upstream, "a.example") == "198.51.100.1");
        CHECK(f.server.connections() == 1);
    });
    CHECK(f.server.asked().size() == 10);
    CHECK(f.server.asked()[0].query.id != f.server.asked()[2].query.id);
}

TEST_CASE("dns upstream: a kept connection that the server closed is replaced") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        if (asked.tcp) return {address_reply(asked, "198.51.100.1")};
        return {with_flag(asked.reply({}), 2, 0x02)};
    });
    const auto upstream = f.upstream();
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await ask(upstream, "a.example") == "198.51.100.1");
        bool closing = true;
        f.server.script([&](const Asked& asked) -> std::vector<std::string> {
            if (!asked.tcp) return {with_flag(asked.reply({}), 2, 0x02)};
            if (std::exchange(closing, false)) return {};
            return {address_reply(asked, "198.51.100.2")};
        });
        CHECK(co_await ask(upstream, "b.example") == "198.51.100.2");
        CHECK(f.server.connections() == 2);
    });
}

TEST_CASE("dns upstream: answers over TCP must belong, too, and be whole") {
    bool cut = false;
    UpstreamFixture f([&](const Asked& asked) -> std::vector<std::string> {
        if (!asked.tcp || cut) return {with_flag(asked.reply({}), 2, 0x02)};
        return {codec::with_id(address_reply(asked, "203.0.113.1"),
                               static_cast<std::uint16_t>(asked.query.id + 1))};
    });
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await ask(f.upstream(), "a.example") == "error: protocol");
        cut = true;
        CHECK(co_await ask(f.upstream(), "a.example") == "error: protocol");
    });
}

TEST_CASE("dns upstream: garbage behind the question is asked for again over TCP, then given up") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        std::string reply = asked.reply({});
        reply[7] = 1;
        // A pointer to itself.
        reply += std::string("\xc0", 1) + static_cast<char>(reply.size());
        return {reply + std::string(20, '\xff')};
    });
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await ask(f.upstream(), "a.example") == "error: protocol");
    });
    CHECK(f.server.asked().size() == 2);
}

TEST_CASE("dns upstream: huge answers pass whole") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        if (!asked.tcp) return {with_flag(asked.reply({}), 2, 0x02)};
        std::vector<codec::ResourceRecord> answers;
        for (int i = 0; i < 230; ++i) {
            answers.push_back(record(asked.query.question.name, codec::kTypeTxt,
                                     '\xff' + std::string(255, static_cast<char>(i))));
        }
        return {asked.reply(answers)};
    });
    f.loop.run([&]() -> Awaitable<void> {
        const auto asked = question("a.example", codec::kTypeTxt);
        auto answer = co_await Upstream::ask(f.upstream(), asked, kPatience);
        REQUIRE(answer);
        CHECK(answer->answers.size() == 230);
    });
}

TEST_CASE("dns upstream: letters in random case must come back") {
    std::set<std::string> names;
    UpstreamFixture f([&](const Asked& asked) -> std::vector<std::string> {
        names.insert(asked.message.substr(12, 40));
        if (asked.tcp) return {address_reply(asked, "198.51.100.1")};
        Asked guessed = asked;
        guessed.message = asked.message.substr(0, 12) +
                          codec::lower_case(asked.message.substr(12, 39)) +
                          asked.message.substr(51);
        return {address_reply(guessed, "203.0.113.1")};
    });
    f.settings.mixed_case = true;
    const auto upstream = f.upstream();
    const std::string name = "abcdefghijklmnopqrstuvwxyzabc.example";
    REQUIRE(wire(name).size() == 39);
    f.loop.run([&]() -> Awaitable<void> {
        // The guess is not believed.
        CHECK(co_await ask(upstream, name) == "198.51.100.1");
        CHECK(f.server.connections() == 1);
        f.server.script([&](const Asked& asked) -> std::vector<std::string> {
            names.insert(asked.message.substr(12, 40));
            return {address_reply(asked, "198.51.100.1")};
        });
        CHECK(co_await ask(upstream, name) == "198.51.100.1");
        CHECK(f.server.connections() == 1);
    });
    CHECK(names.size() == 3);
}

TEST_CASE("dns upstream: a server from before EDNS is asked without it") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        if (!asked.query.edns) return {address_reply(asked, "198.51.100.1")};
        std::string refusal = asked.reply({}, 1);
        if (asked.query.question.name == "short.example") {
            refusal.resize(12);
            refusal[5] = 0;
        }
        return {refusal};
    });
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await ask(f.upstream(), "a.example") == "198.51.100.1");
        CHECK(co_await ask(f.upstream(), "short.example") == "198.51.100.1");
    });
}

TEST_CASE("dns upstream: nobody there, and silence, end in their own ways") {
    UpstreamFixture f([](const Asked&) { return std::vector<std::string>(); });
    const auto upstream = f.upstream();
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await ask(upstream, "a.example", std::chrono::milliseconds(30)) ==
              "error: timeout");
        f.server.close();
        CHECK(co_await ask(upstream, "a.example") == "error: unavailable");
    });
}

TEST_CASE("dns upstream: a server that is silent over TCP only takes no more than the timeout") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        // Over TCP the connection is closed instead of answered.
        if (asked.tcp) return {};
        return {with_flag(asked.reply({}), 2, 0x02)};
    });
    f.loop.run([&]() -> Awaitable<void> {
        const std::string outcome = co_await ask(f.upstream(), "a.example");
        CHECK(outcome.starts_with("error: "));
    });
}

TEST_CASE("dns upstream: every socket passes the hook, and none is used that it refuses") {
    UpstreamFixture f([](const Asked& asked) -> std::vector<std::string> {
        if (asked.tcp) return {address_reply(asked, "198.51.100.1")};
        return {with_flag(asked.reply({}), 2, 0x02)};
    });
    int sockets = 0;
    Status verdict;
    const SocketHook hook = [&](int fd) -> Status {
        int type = 0;
        socklen_t size = sizeof type;
        CHECK(::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0);
        ++sockets;
        return verdict;
    };
    const auto upstream =
        std::make_shared<Upstream>(f.loop.executor(), f.server.upstream(hook), f.settings);
    f.loop.run([&]() -> Awaitable<void> {
        CHECK(co_await ask(upstream, "a.example") == "198.51.100.1");
        CHECK(sockets == 2);
        verdict = Error(ErrorCode::permission_denied, "no mark");
        const std::size_t before = f.server.asked().size();
        CHECK(co_await ask(upstream, "a.example") == "error: permission_denied");
        CHECK(f.server.asked().size() == before);
    });
}

TEST_CASE("dns upstream: health is what probes say, in the servers' order") {
    Loop loop;
    const ScriptedServer::Script answer = [](const Asked& asked) -> std::vector<std::string> {
        return {asked.reply({}, 5)};
    };
    ScriptedServer refusing(loop.executor(), answer);
    ScriptedServer silent(loop.executor(), [](const Asked&) { return std::vector<std::string>(); });
    UpstreamSettings settings;
    settings.timeout = std::chrono::milliseconds(300);
    const auto make = [&](const ScriptedServer& server) {
        return std::make_shared<Upstream>(loop.executor(), server.upstream(), settings);
    };
    const auto first = make(silent);
    const auto second = make(refusing);
    const auto health = std::make_shared<UpstreamHealth>(
        loop.executor(), std::vector<std::shared_ptr<Upstream>>{first, second}, settings);
    CHECK(health->order().size() == 2);
    loop.run([&]() -> Awaitable<void> {
        health->start();
        while (health->order().size() == 2)
            co_await net::sleep_for(std::chrono::milliseconds(2));
        CHECK(health->order() == std::vector<std::shared_ptr<Upstream>>{second});
        silent.script(answer);
        health->suspect(first);
        while (health->order().size() == 1)
            co_await net::sleep_for(std::chrono::milliseconds(2));
        CHECK(health->order() == std::vector<std::shared_ptr<Upstream>>{first, second});
        refusing.close();
        silent.close();
        health->suspect(first);
        health->suspect(second);
        while (health->healthy() != std::vector<bool>{false, false})
            co_await net::sleep_for(std::chrono::milliseconds(2));
        CHECK(health->order().size() == 2);
        health->stop();
    });
    CHECK(refusing.probes() == 1);
}

TEST_CASE("dns upstream: a probe asks for the root's servers or for a name's address") {
    CHECK(probe_question(".")->type == codec::kTypeNs);
    CHECK(probe_question(".")->name == std::string(1, '\0'));
    CHECK(probe_question("Probe.example.")->name == wire("probe.example"));
    CHECK(probe_question("probe.example")->type == codec::kTypeA);
    CHECK_FALSE(probe_question(""));
    CHECK_FALSE(probe_question("a..b"));
    CHECK_FALSE(probe_question(std::string(64, 'a')));
    std::string endless;
    for (int i = 0; i < 130; ++i)
        endless += "a.";
    CHECK_FALSE(probe_question(endless));
}
