#include "agent/pty/session.hpp"
#include "pty_peer.hpp"

#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using test_support::Loop;

namespace {

Reply connect_plainly(const AgentProcess& agent, const std::string& id, const std::string& query) {
    const http::Fields upgrade{{"Connection", "Upgrade"},
                               {"Upgrade", "websocket"},
                               {"Sec-WebSocket-Version", "13"},
                               {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
    return agent.call("GET", "/pty/" + id + "/ws?" + query, {}, upgrade);
}

}  // namespace

TEST_CASE("viewers read beside the client that holds the session", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent, R"({"command":"echo one; read -r x; echo got $x"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer holder(loop, agent);
        co_await holder.connect(id, "pty=0");
        co_await holder.until_output("one\n");
        CHECK(holder.role == "holder");
        PtyPeer viewer(loop, agent);
        co_await viewer.connect(id, "mode=viewer");
        co_await viewer.until_connected();
        CHECK(viewer.role == "viewer");
        CHECK(viewer.mode == "pipe");
        CHECK(viewer.replay == "one\n");
        co_await viewer.say(R"({"type":"ping"})");
        co_await viewer.until([&] { return viewer.log.find("pong") != std::string::npos; });
        co_await holder.type("x\n");
        co_await holder.until_end();
        co_await viewer.until_end();
        CHECK(holder.output == "one\ngot x\n");
        CHECK(viewer.output == "got x\n");
        CHECK(holder.exit_code == 0);
        CHECK(viewer.exit_code == 0);
        CHECK(viewer.close_code == 1000);
    });
}

TEST_CASE("what a viewer writes does not reach the shell, and five times end it", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer holder(loop, agent);
        co_await holder.connect(id, "pty=0");
        co_await holder.until_connected();
        PtyPeer viewer(loop, agent);
        co_await viewer.connect(id, "mode=viewer");
        co_await viewer.until_connected();
        co_await viewer.type("echo typed; exit 9\n");
        co_await viewer.say(R"({"type":"stdin","data":"exit 9\n"})");
        co_await viewer.say(R"({"type":"resize","cols":100,"rows":50})");
        co_await viewer.say(R"({"type":"signal","signal":"SIGKILL"})");
        co_await viewer.say(R"({"type":"signal","signal":"SIGHUP"})");
        co_await viewer.until_end();
        CHECK(viewer.error_code == "READ_ONLY");
        CHECK(viewer.errors_told == 5);
        CHECK(viewer.close_code == 1011);
        co_await holder.type("echo still here\n");
        co_await holder.until_output("still here\n");
        CHECK(holder.output == "still here\n");
        CHECK(PtyPeer::describe(agent, id).running);
    });
}

TEST_CASE("only what runs can be viewed, by so many at once", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent);
    Reply idle = connect_plainly(agent, id, "mode=viewer");
    CHECK(idle.status == 409);
    CHECK_THAT(idle.body, Catch::Contains("NOT_RUNNING"));
    Reply wrong = connect_plainly(agent, id, "mode=view");
    CHECK(wrong.status == 400);
    CHECK_THAT(wrong.body, Catch::Contains("mode: "));
    CHECK_FALSE(PtyPeer::describe(agent, id).running);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer holder(loop, agent);
        co_await holder.connect(id, "pty=0");
        co_await holder.until_connected();
        std::vector<std::unique_ptr<PtyPeer>> viewers;
        for (std::size_t i = 0; i < PtySession::kMaxViewers; ++i) {
            viewers.push_back(std::make_unique<PtyPeer>(loop, agent));
            co_await viewers.back()->connect(id, "mode=viewer");
            co_await viewers.back()->until_connected();
        }
        Reply refused = connect_plainly(agent, id, "mode=viewer");
        CHECK(refused.status == 429);
        CHECK_THAT(refused.body, Catch::Contains("TOO_MANY_VIEWERS"));
        viewers.pop_back();
        bool room = false;
        for (int i = 0; i < 500 && !room; ++i) {
            // One that has gone makes room, as this one does at once.
            PtyPeer next(loop, agent);
            try {
                co_await next.connect(id, "mode=viewer");
                room = true;
            } catch (const std::runtime_error&) {
                ::usleep(10'000);
            }
        }
        CHECK(room);
        // The holder leaves, the viewers stay, another takes the session.
        holder.vanish();
        PtyPeer next(loop, agent);
        co_await next.connect(id, "pty=0&takeover=1");
        co_await next.type("echo again; exit 4\n");
        for (auto& viewer : viewers) {
            co_await viewer->until_end();
            CHECK(viewer->output == "again\n");
            CHECK(viewer->exit_code == 4);
        }
    });
}

TEST_CASE("a viewer that takes nothing slows nobody down and goes on behind the gap",
          "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent, R"({"command":"read -r x; seq 1 1000000; echo end"})");
    const std::string expected = numbers(1, 1'000'000, "\n") + "end\n";
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer holder(loop, agent);
        co_await holder.connect(id, "pty=0");
        co_await holder.until_connected();
        PtyPeer viewer(loop, agent);
        co_await viewer.connect(id, "mode=viewer");
        co_await viewer.until_connected();
        co_await holder.type("\n");
        co_await holder.until_end();
        CHECK((holder.output == expected));
        // So long the viewer has not read: its socket took less than there was.
        co_await viewer.until_end();
        CHECK(viewer.exit_code == 0);
        REQUIRE(viewer.replay_from >= 0);
        const std::string last = viewer.after_replay;
        REQUIRE(last.size() >= 1000);
        CHECK((expected.ends_with(last)));
    });
}

TEST_CASE("a session says whether its launch was tried and failed", "[agent][pty]") {
    AgentOptions options;
    options.environment = {{"PATH", "/nowhere"}};
    AgentProcess broken(std::move(options));
    std::string id = PtyPeer::create(broken);
    CHECK_FALSE(PtyPeer::describe(broken, id).launch_attempted);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, broken);
        co_await peer.connect(id);
        co_await peer.until_end();
        CHECK(peer.error_code == "START_FAILED");
    });
    CHECK(PtyPeer::describe(broken, id).launch_attempted);
    CHECK(PtyPeer::describe(broken, id).launch_failed);
    AgentProcess agent;
    std::string good = PtyPeer::create(agent, R"({"command":"exit 3"})");
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(good);
        co_await peer.until_end();
    });
    CHECK(PtyPeer::describe(agent, good).launch_attempted);
    CHECK_FALSE(PtyPeer::describe(agent, good).launch_failed);
}
