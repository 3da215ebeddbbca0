#include "pty_peer.hpp"

#include <filesystem>
#include <signal.h>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using test_support::Loop;

namespace {

bool alive(pid_t pid) {
    return ::kill(pid, 0) == 0;
}

}  // namespace

TEST_CASE("a PTY session is created, described and deleted", "[agent][pty]") {
    AgentProcess agent;
    Scratch scratch;
    std::string id = PtyPeer::create(agent);
    auto fresh = PtyPeer::describe(agent, id);
    CHECK(fresh.members == 5);
    CHECK(fresh.session_id == id);
    CHECK_FALSE(fresh.running);
    CHECK(fresh.offset == 0);
    CHECK(agent.call("DELETE", "/pty/" + id).status == 200);
    for (const char* method : {"GET", "DELETE"}) {
        Reply gone = agent.call(method, "/pty/" + id);
        CHECK(gone.status == 404);
        CHECK_THAT(gone.body, Catch::Contains("CONTEXT_NOT_FOUND"));
    }
    CHECK(agent.call("GET", "/pty/" + id + "/ws").status == 404);
    PtyPeer::create(agent, R"({"CWD":")" + scratch.at("a/b") + R"(","command":null,"other":1})");
    CHECK(std::filesystem::is_directory(scratch.at("a/b")));
}

TEST_CASE("a PTY session that cannot be created has one answer", "[agent][pty]") {
    AgentProcess agent;
    Scratch scratch;
    scratch.file("file", "");
    Reply failed = agent.call("POST", "/pty", R"({"cwd":")" + scratch.at("file/below") + "\"}");
    CHECK(failed.status == 500);
    auto body = json::parse(failed.body);
    REQUIRE(body.has_value());
    CHECK(body->at("code") == "RUNTIME_ERROR");
    for (const char* wrong : {"[1]", "{", R"({"cwd":5})", R"({"command":"a\u0000b"})"}) {
        Reply refused = agent.call("POST", "/pty", wrong);
        CHECK(refused.status == 400);
        CHECK_THAT(refused.body, Catch::Contains("INVALID_REQUEST_BODY"));
    }
    std::string id = PtyPeer::create(agent);
    CHECK(agent.call("GET", "/pty/" + id + "/ws").status == 400);
}

TEST_CASE("a terminal has a type, a size and a controlling terminal", "[agent][pty]") {
    AgentProcess agent;
    Scratch scratch;
    std::string id = PtyPeer::create(
        agent, R"({"cwd":")" + scratch.path() +
                   R"(","command":"echo $TERM; stty size; tty; pwd; : > /dev/tty"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id);
        co_await peer.until_end();
        CHECK(peer.log == "connected stdout exit close ");
        CHECK(peer.mode == "pty");
        CHECK(peer.session == id);
        CHECK_THAT(peer.output, Catch::StartsWith("xterm-256color\r\n24 80\r\n/dev/pts/"));
        CHECK_THAT(peer.output, Catch::EndsWith(scratch.path() + "\r\n"));
        CHECK(peer.exit_code == 0);
    });
}

TEST_CASE("all output comes before the exit, and that before the close", "[agent][pty]") {
    AgentProcess agent;
    auto mode = GENERATE(std::string(), std::string("pty=0"));
    CAPTURE(mode);
    std::string id = PtyPeer::create(agent, R"({"command":"seq 1 200000; exit 3"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id, mode);
        co_await peer.until_end();
        CHECK(peer.log == "connected stdout exit close ");
        CHECK((peer.output == numbers(1, 200'000, mode.empty() ? "\r\n" : "\n")));
        CHECK(peer.largest <= 32 * 1024);
        CHECK(peer.exit_code == 3);
        CHECK(peer.close_code == 1000);
        CHECK(peer.close_reason == "process exited");
        auto state = PtyPeer::describe(agent, id);
        CHECK_FALSE(state.running);
        CHECK(state.offset == static_cast<std::int64_t>(peer.output.size()));
    });
    CHECK(agent.zombies() == 0);
}

TEST_CASE("a survivor that holds the terminal does not hold up the exit", "[agent][pty]") {
    AgentProcess agent;
    auto mode = GENERATE(std::string(), std::string("pty=0"));
    CAPTURE(mode);
    std::string id = PtyPeer::create(
        agent, R"({"command":"trap '' HUP; sleep 300 & echo survivor=$!; exit 4"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id, mode);
        co_await peer.until_end();
        CHECK(peer.exit_code == 4);
        int survivor = number_after(peer.output, "survivor=");
        CHECK(alive(survivor));
        ::kill(survivor, SIGKILL);
    });
}

TEST_CASE("what is typed reaches the shell, as bytes and as JSON", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id);
        co_await peer.type("echo one$((1+1))\n");
        co_await peer.until_output("one2\r\n");
        co_await peer.say(R"({"type":"stdin","data":"echo \u20ac$((2+2))\n"})");
        co_await peer.until_output(
            "\xE2\x82\xAC"
            "4\r\n");
        co_await peer.type("exit 5\n");
        co_await peer.until_end();
        CHECK(peer.exit_code == 5);
    });
}

TEST_CASE("a resize reaches the programs in the terminal", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(
        agent, R"({"command":"trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id);
        co_await peer.until_output("ready");
        // Those that are no sizes change nothing.
        co_await peer.say(R"({"type":"resize","cols":0,"rows":5})");
        co_await peer.say(R"({"type":"resize","cols":70000,"rows":5})");
        co_await peer.say(R"({"type":"resize","cols":"9","rows":5})");
        co_await peer.say(R"({"type":"resize","cols":132,"rows":50})");
        co_await peer.until_output("50 132");
        CHECK(peer.output.find("5 ") == std::string::npos);
    });
}

TEST_CASE("SIGINT interrupts the job in the foreground and the shell goes on", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id);
        co_await peer.type(
            "sh -c 'trap \"exit 7\" INT; echo star''ted; while :; do sleep 0.05; done'\n");
        co_await peer.until_output("started");
        co_await peer.say(R"({"type":"signal","signal":"SIGNONE"})");
        co_await peer.say(R"({"type":"signal","signal":"SIGINT"})");
        co_await peer.type("echo code=$?\n");
        co_await peer.until_output("code=7");
        co_await peer.say(R"({"type":"signal","signal":"SIGKILL"})");
        co_await peer.until_end();
        CHECK(peer.exit_code == -1);
    });
}

TEST_CASE("a signal reaches the whole group in pipe mode", "[agent][pty]") {
    AgentOptions options;
    options.init = true;  // reaps the orphan
    AgentProcess agent(std::move(options));
    std::string id = PtyPeer::create(
        agent, R"({"command":"sleep 300 & echo child=$!; wait; echo not reached"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id, "pty=0");
        co_await peer.until_output("\n");
        int child = number_after(peer.output, "child=");
        co_await peer.say(R"({"type":"signal","signal":"SIGTERM"})");
        co_await peer.until_end();
        CHECK(peer.exit_code == -1);
        CHECK(eventually([&] { return !alive(child); }));
    });
}

TEST_CASE("frames that mean nothing are answered or ignored, and the client stays",
          "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id, "pty=0");
        co_await peer.until_connected();
        for (const char* ignored :
             {"{", "[1]", "7", "\"stdin\"", R"({"type":1})", R"({"type":"stdin"})",
              R"({"type":"stdin","data":5})", R"({"type":"signal"})", ""}) {
            co_await peer.say(ignored);
        }
        co_await peer.say(R"({"type":"ping"})");
        co_await peer.until([&] { return peer.log == "connected pong "; });
        co_await peer.say(R"({"type":"dance"})");
        co_await peer.until([&] { return !peer.error_code.empty(); });
        CHECK(peer.error_code == "INVALID_FRAME");
        co_await peer.type("echo still here\n");
        co_await peer.until_output("still here\n");
    });
}

TEST_CASE("pipe mode keeps the streams apart, live and in a replay that asks for it",
          "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id, "pty=0");
        co_await peer.type("echo out; echo err >&2; test -t 0 || echo pipe\n");
        co_await peer.until([&] { return peer.output == "out\npipe\n" && peer.errors == "err\n"; });
        CHECK(peer.mode == "pipe");
        PtyPeer mixed(loop, agent);
        co_await mixed.connect(id, "takeover=1");
        co_await mixed.until_connected();
        CHECK(mixed.log == "replay connected ");
        CHECK(mixed.mode == "pipe");
        CHECK(mixed.replay_from == 0);
        CHECK(mixed.replay.size() == 13);
        CHECK_THAT(mixed.replay, Catch::Contains("err\n") && Catch::Contains("out\n"));
        PtyPeer apart(loop, agent);
        co_await apart.connect(id, "takeover=1&streams=1&since=1");
        co_await apart.until_connected();
        CHECK_THAT(apart.log, Catch::StartsWith("replay "));
        CHECK(apart.replay_from == 1);
        CHECK(apart.replay.empty());
        CHECK(apart.output.size() + apart.errors.size() == 12);
        CHECK_THAT(apart.errors, Catch::EndsWith("rr\n"));
        CHECK(apart.output.find("err") == std::string::npos);
    });
}

TEST_CASE("a client learns that the shell's input is closed", "[agent][pty]") {
    AgentProcess agent;
    std::string id =
        PtyPeer::create(agent, R"({"command":"exec <&-; echo closed; exec sleep 300"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id, "pty=0");
        co_await peer.until_output("closed");
        co_await peer.type("x");
        co_await peer.until_end();
        CHECK(peer.error_code == "STDIN_WRITE_FAILED");
        CHECK(peer.close_code == 1011);
    });
}

TEST_CASE("a shell that cannot start is told to the client", "[agent][pty]") {
    Scratch empty;
    AgentOptions options;
    options.environment = {{"PATH", empty.path()}};
    AgentProcess agent(std::move(options));
    std::string id = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        for (const char* mode : {"pty=1", "pty=0"}) {
            PtyPeer peer(loop, agent);
            co_await peer.connect(id, mode);
            co_await peer.until_end();
            CHECK(peer.log == "error close ");
            CHECK(peer.error_code == "START_FAILED");
        }
    });
}

TEST_CASE("where there is no bash, sh serves with flags that it knows", "[agent][pty]") {
    Scratch bin;
    std::filesystem::create_symlink("/bin/sh", bin.at("sh"));
    AgentOptions options;
    options.environment = {{"PATH", bin.path()}, {"TERM", "dumb"}};
    AgentProcess agent(std::move(options));
    std::string with_command = PtyPeer::create(agent, R"({"command":"echo $0 $TERM"})");
    std::string interactive = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(with_command);
        co_await peer.until_end();
        CHECK(peer.output == "sh dumb\r\n");
        PtyPeer typist(loop, agent);
        co_await typist.connect(interactive);
        co_await typist.type("echo $((20+3))\n");
        co_await typist.until_output("23\r\n");
    });
}

TEST_CASE("deleting a session kills its shell and tells its client", "[agent][pty]") {
    AgentProcess agent;
    std::string id = PtyPeer::create(agent, R"({"command":"echo shell=$$; sleep 300 & wait"})");
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(id);
        co_await peer.until_output("\n");
        int shell = number_after(peer.output, "shell=");
        CHECK(alive(shell));
        CHECK(agent.call("DELETE", "/pty/" + id).status == 200);
        co_await peer.until_end();
        CHECK(peer.exit_code == -1);
        CHECK(eventually([&] { return !alive(shell); }));
        CHECK(agent.call("GET", "/pty/" + id).status == 404);
    });
    CHECK(eventually([&] { return agent.zombies() == 0; }));
}

TEST_CASE("when the agent ends, shells end and their clients are told", "[agent][pty]") {
    AgentProcess agent;
    std::string stubborn = PtyPeer::create(
        agent, R"({"command":"trap '' HUP TERM; echo shell=$$; sleep 300; sleep 300"})");
    std::string interactive = PtyPeer::create(agent);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer first(loop, agent);
        co_await first.connect(stubborn);
        co_await first.until_output("\n");
        int shell = number_after(first.output, "shell=");
        PtyPeer second(loop, agent);
        co_await second.connect(interactive);
        co_await second.until_output("bash");
        agent.signal(SIGTERM);
        co_await first.until_end();
        co_await second.until_end();
        CHECK(first.exit_code == -1);
        CHECK_THAT(second.log, Catch::EndsWith("exit close "));
        CHECK(agent.wait() == 0);
        CHECK(!alive(shell));
    });
}

TEST_CASE("the number of sessions is limited; ended ones make room", "[agent][pty]") {
    AgentProcess agent;
    std::string ending = PtyPeer::create(agent, R"({"command":"exit 0"})");
    for (int i = 1; i < 100; ++i)
        PtyPeer::create(agent);
    Reply full = agent.call("POST", "/pty");
    CHECK(full.status == 500);
    CHECK_THAT(full.body, Catch::Contains("RUNTIME_ERROR") && Catch::Contains("100 PTY sessions"));
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        PtyPeer peer(loop, agent);
        co_await peer.connect(ending);
        co_await peer.until_end();
    });
    CHECK(eventually([&] { return agent.call("POST", "/pty").status == 201; }));
    CHECK(agent.call("GET", "/pty/" + ending).status == 404);
    CHECK(agent.call("POST", "/pty").status == 500);
}

TEST_CASE("a PTY needs the token", "[agent][pty]") {
    AgentOptions options;
    options.access_token = "secret";
    AgentProcess agent(std::move(options));
    CHECK(agent.call("POST", "/pty").status == 401);
    CHECK(agent.call("GET", "/pty/x/ws").status == 401);
}
