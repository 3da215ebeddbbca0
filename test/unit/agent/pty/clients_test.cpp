#include "pty_peer.hpp"

#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using test_support::Loop;

TEST_CASE("a client that comes back loses nothing and gets nothing twice", "[agent][pty]") {
    AgentProcess agent;
    auto mode = GENERATE(std::string("pty=1"), std::string("pty=0"));
    CAPTURE(mode);
    std::string id = PtyPeer::create(agent, R"({"command":"seq 1 60000; read -r x"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        std::string all;
        std::string expected = numbers(1, 60'000, mode == "pty=1" ? "\r\n" : "\n");
        std::size_t step = 30'000;
        while (all.size() < expected.size()) {
            PtyPeer peer(loop, agent);
            co_await peer.connect(id, mode + "&takeover=1&since=" + std::to_string(all.size()));
            std::size_t wanted = std::min(step, expected.size() - all.size());
            co_await peer.until([&] { return peer.replay.size() + peer.output.size() >= wanted; });
            if (!peer.replay.empty()) {
                CHECK(peer.replay_from == static_cast<std::int64_t>(all.size()));
            }
            all += peer.replay + peer.output;
            peer.vanish();
        }
        CHECK((all == expected));
    });
}

TEST_CASE("the latest 1 MiB is replayed, in one frame that common clients take", "[agent][pty]") {
    AgentProcess agent;
    std::string id =
        PtyPeer::create(agent, R"({"command":"seq 1 400000; sleep 0.01; echo end; read -r x"})");
    std::string expected = numbers(1, 400'000, "\n") + "end\n";
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer first(loop, agent);
        co_await first.connect(id, "pty=0");
        co_await first.until_output("end\n");
        first.vanish();
        PtyPeer second(loop, agent);
        co_await second.connect(id, "pty=0&takeover=1");
        co_await second.until_connected();
        CHECK(second.replay.size() + 9 == std::size_t{1} << 20);
        CHECK(second.replay_from + second.replay.size() == expected.size());
        CHECK((second.replay == expected.substr(expected.size() - second.replay.size())));
        PtyPeer third(loop, agent);
        co_await third.connect(id, "takeover=1&since=" + std::to_string(expected.size()));
        co_await third.until_connected();
        CHECK(third.log == "connected ");
    });
}

TEST_CASE("one client at a time; another may take over and the shell goes on", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer first(loop, agent);
        co_await first.connect(id);
        co_await first.type("echo shell=$$\n");
        co_await first.until_output("shell=");
        co_await first.until([&] {
            return number_after(first.output + " ", "shell=") > 0 ||
                   first.output.rfind("shell=") != first.output.find("shell=");
        });
        http::Fields upgrade{{"Connection", "Upgrade"},
                             {"Upgrade", "websocket"},
                             {"Sec-WebSocket-Version", "13"},
                             {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
        Reply refused = agent.call("GET", "/pty/" + id + "/ws", {}, upgrade);
        CHECK(refused.status == 409);
        CHECK_THAT(refused.body, Catch::Contains("\"ALREADY_CONNECTED\""));
        PtyPeer second(loop, agent);
        co_await second.connect(id, "takeover=1");
        co_await first.until_end();
        CHECK(first.close_code == 4001);
        CHECK(first.close_reason == "TAKEN_OVER");
        co_await second.type("echo again=$((6*7))\n");
        co_await second.until_output("again=42");
        CHECK(PtyPeer::describe(agent, id).running);
    });
}

TEST_CASE("of many that take over at once the last one has the session", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        std::vector<std::unique_ptr<PtyPeer>> peers;
        for (int i = 0; i < 10; ++i) {
            peers.push_back(std::make_unique<PtyPeer>(loop, agent));
            co_await peers.back()->connect(id, "takeover=1");
        }
        co_await peers.back()->type("echo have=$((40+2))\n");
        co_await peers.back()->until_output("have=42");
        for (int i = 0; i < 9; ++i) {
            auto& peer = *peers[static_cast<std::size_t>(i)];
            co_await peer.until_end();
            CHECK(peer.close_code == 4001);
        }
    });
}

TEST_CASE("an end that nobody saw is told to who comes next; then the shell starts again",
          "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent, R"({"command":"echo run; read -r x; exit 9"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer first(loop, agent);
        co_await first.connect(id);
        co_await first.until_output("run\r\n");
        co_await first.type("go\n");
        first.vanish();
        CHECK(eventually([&] { return !PtyPeer::describe(agent, id).running; }));
        PtyPeer second(loop, agent);
        co_await second.connect(id, "takeover=1");
        co_await second.until_end();
        CHECK_THAT(second.log,
                   Catch::StartsWith("replay connected ") && Catch::EndsWith("exit close "));
        CHECK(second.exit_code == 9);
        std::int64_t total = PtyPeer::describe(agent, id).offset;
        PtyPeer third(loop, agent);
        co_await third.connect(id, "pty=0&takeover=1");
        co_await third.until_output("run\n");
        CHECK(third.mode == "pipe");
        CHECK(third.replay_from == 0);
        CHECK(static_cast<std::int64_t>(third.replay.size()) == total);
        CHECK(PtyPeer::describe(agent, id).running);
    });
}

TEST_CASE("the shell runs on while nobody is connected", "[agent][pty]") {
    AgentProcess agent;
    std::string id =
        PtyPeer::create(agent, R"({"command":"read -r x; seq 1 500000; echo end; read -r x"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id);
        co_await peer.until_connected();
        co_await peer.type("go\n");
        peer.vanish();
        auto expected = static_cast<std::int64_t>(numbers(1, 500'000, "\r\n").size());
        CHECK(eventually([&] { return PtyPeer::describe(agent, id).offset > expected; }));
        CHECK(PtyPeer::describe(agent, id).running);
    });
}

TEST_CASE("a client that does not read slows the shell and costs no memory", "[agent][pty]") {
    AgentProcess agent;
    auto mode = GENERATE(std::string(), std::string("pty=0"));
    CAPTURE(mode);
    std::string id = PtyPeer::create(agent, R"({"command":"yes 0123456789abcdef"})");
    long before = agent.anonymous_memory();
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id, mode);
        co_await peer.until_output("f");
        auto total = [&] { return PtyPeer::describe(agent, id).offset; };
        // It stands still once the buffers between are full.
        CHECK(eventually([&] {
            std::int64_t then = total();
            ::usleep(100'000);
            return total() == then;
        }));
        CHECK(total() < std::int64_t{32} << 20);
        CHECK(agent.anonymous_memory() < before + kAllocatorFactor * 3 * 1024);
        std::size_t heard = peer.output.size();
        co_await peer.until([&] { return peer.output.size() > heard + (std::size_t{16} << 20); });
    });
}

TEST_CASE("a flood of input waits for the shell and arrives whole", "[agent][pty]") {
    AgentProcess agent;
    auto mode = GENERATE(std::string(), std::string("pty=0"));
    CAPTURE(mode);
    std::string id = PtyPeer::create(
        agent,
        R"({"command":"stty raw -echo 2>/dev/null; echo go; sleep 0.2; head -c 5000000 | cksum"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id, mode);
        co_await peer.until_output("go");
        auto flood = [](PtyPeer& to) -> Awaitable<void> {
            for (int i = 0; i < 50; ++i)
                co_await to.type(std::string(100'000, static_cast<char>('a' + i % 26)));
        };
        net::spawn(loop.executor(), flood(peer), "flood");
        co_await peer.until_end();
        CHECK(peer.exit_code == 0);
        CHECK_THAT(peer.output, Catch::Contains("go\n") && Catch::EndsWith("2661190986 5000000\n"));
    });
}
