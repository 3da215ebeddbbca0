#include "json/document.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

std::string post_command(const std::string& body) {
    return "POST /command HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

std::string init_id(const std::vector<StreamEvent>& events) {
    REQUIRE_FALSE(events.empty());
    CHECK(events.front().type == "init");
    return events.front().text;
}

/// The id in the first bytes of a raw answer.
std::string raw_id(const std::string& text) {
    const std::string mark = "\"init\",\"text\":\"";
    std::size_t at = text.find(mark);
    REQUIRE(at != std::string::npos);
    return text.substr(at + mark.size(), 32);
}

}  // namespace

TEST_CASE("A foreground command streams init, ping, exact output and its end") {
    AgentProcess agent;
    auto events =
        agent.command(shell_request("echo hello; printf 'a\\rb\\r\\n\\nrest'; echo bad >&2"));
    REQUIRE(events.size() >= 3);
    CHECK(events[0].type == "init");
    CHECK(events[0].text.size() == 32);
    CHECK(events[1].type == "ping");
    CHECK(joined(events, "stdout") == "hello\na\rb\r\n\nrest");
    CHECK(joined(events, "stderr") == "bad\n");
    CHECK(events.back().type == "execution_complete");
    std::vector<std::string> texts;
    for (const auto& event : events) {
        if (event.type == "stdout") texts.push_back(event.text);
    }
    CHECK(texts == std::vector<std::string>{"hello\n", "a\r", "b\r\n", "\n", "rest"});
}

TEST_CASE("One line of output is one event") {
    AgentProcess agent;
    for (int i = 0; i < 20; ++i) {
        auto events = agent.command(shell_request("echo one line"));
        REQUIRE(events.size() == 4);
        CHECK(events[2].text == "one line\n");
    }
}

TEST_CASE("Exit codes and signals end the stream with an error") {
    AgentProcess agent;
    auto failed = agent.command(shell_request("exit 7")).back();
    CHECK(failed.type == "error");
    CHECK(failed.name == "CommandExecError");
    CHECK(failed.value == "7");
    CHECK(failed.trace == "exit status 7");
    auto killed = agent.command(shell_request("kill -TERM $$")).back();
    CHECK(killed.value == "-1");
    CHECK(killed.trace == "signal: terminated");
}

TEST_CASE("Bytes that are no text arrive as replacement characters, characters stay whole") {
    AgentProcess agent;
    auto events = agent.command(
        shell_request("printf 'x\\377y\\342\\202'; sleep 0.25; printf '\\254\\n\\303'"));
    CHECK(joined(events, "stdout") == "x\xef\xbf\xbdy€\n\xef\xbf\xbd");
}

TEST_CASE("An unfinished line is seen before the command ends") {
    AgentProcess agent;
    Scratch scratch;
    RawConnection connection(agent.port());
    std::string wait = "printf 'Password: '; until test -e " + scratch.at("go") +
                       "; do sleep 0.05; done; echo done";
    connection.send(post_command(shell_request(wait)));
    std::string seen = connection.receive_until("Password: ");
    CHECK(seen.find("Password: ") != std::string::npos);
    scratch.file("go", "");
    CHECK(connection.receive_until("\r\n0\r\n\r\n").find("execution_complete") !=
          std::string::npos);
}

TEST_CASE("Old clients get lines without their ends") {
    AgentProcess agent;
    Reply reply = agent.call("POST", "/command", shell_request("printf 'a\\n\\nb'"),
                             {{"User-Agent", "OpenSandbox-Python-SDK/0.1.9"}});
    auto events = parse_events(reply.body);
    REQUIRE(events.size() == 6);
    CHECK(events[2].text == "a");
    CHECK(events[3].text == "\n");
    CHECK(events[4].text == "b");
}

TEST_CASE("An argument vector runs without a shell") {
    AgentProcess agent;
    auto events = agent.command(R"({"argv":["printf","%s|","$HOME","a b"]})");
    CHECK(joined(events, "stdout") == "$HOME|a b|");
    auto missing = agent.command(R"({"argv":["no-such-program-here"]})");
    REQUIRE(missing.size() == 3);
    CHECK(missing[0].type == "init");
    CHECK(missing.back().type == "error");
    CHECK(missing.back().name == "CommandExecError");
    CHECK(missing.back().value.find("no-such-program-here") != std::string::npos);
}

TEST_CASE("A background child that keeps the output open does not keep the stream") {
    AgentProcess agent;
    Scratch scratch;
    // The child outlives the stream and may go on writing without harm.
    auto events = agent.command(shell_request("(sleep 0.4; echo late; echo late >&2; touch " +
                                              scratch.at("survived") + ") & echo now"));
    CHECK(joined(events, "stdout") == "now\n");
    CHECK(events.back().type == "execution_complete");
    CHECK_FALSE(std::filesystem::exists(scratch.at("survived")));
    CHECK(eventually([&] { return std::filesystem::exists(scratch.at("survived")); }));
}

TEST_CASE("A child that never stops writing does not keep the stream either") {
    AgentProcess agent;
    Scratch scratch;
    auto events = agent.command(shell_request("yes & echo $! > " + scratch.at("pid")));
    CHECK(events.back().type == "execution_complete");
    // What it goes on writing is dropped, and others are served meanwhile.
    CHECK(joined(agent.command(shell_request("echo other")), "stdout") == "other\n");
    int pid = std::stoi(scratch.read("pid"));
    CHECK(::kill(pid, SIGKILL) == 0);
}

TEST_CASE("A timeout kills the whole group") {
    AgentProcess agent;
    Scratch scratch;
    auto events = agent.command(
        shell_request("(sleep 1; touch " + scratch.at("x") + ") & sleep 60", "\"timeout\":200"));
    CHECK(events.back().value == "-1");
    CHECK(events.back().trace == "signal: killed");
    ::usleep(1'200'000);
    CHECK_FALSE(std::filesystem::exists(scratch.at("x")));
}

TEST_CASE("The environment is the agent's, then the file's, then the request's") {
    Scratch scratch;
    AgentOptions options;
    options.environment = {{"PATH", "/usr/bin:/bin"},
                           {"A", "agent"},
                           {"B", "agent"},
                           {"C", "agent"},
                           {"EXECD_ENVS", scratch.at("envs")},
                           {"EXECD_ACCESS_TOKEN", "x"}};
    AgentProcess agent(std::move(options));
    scratch.file("envs", "B='file'\nC='file'\nD=\"two\\nlines\"\n");
    auto events = agent.command(
        shell_request("echo $A $B $C \"$D\" ${EXECD_ACCESS_TOKEN-none} ${EXECD_ENVS##*/}",
                      R"("envs":{"C":"request"})"));
    CHECK(joined(events, "stdout") == "agent file request two\nlines none envs\n");
}

TEST_CASE("A command starts in its directory, which must exist") {
    AgentProcess agent;
    CHECK(joined(agent.command(shell_request("pwd", R"("cwd":"/usr")")), "stdout") == "/usr\n");
    CHECK(joined(agent.command(shell_request("pwd")), "stdout") == "/\n");
    Reply missing = agent.call("POST", "/command", shell_request("pwd", R"("cwd":"/no/such")"));
    CHECK(missing.status == 400);
    CHECK(missing.body.find("INVALID_REQUEST_BODY") != std::string::npos);
}

TEST_CASE("A command runs as another user when asked to") {
    AgentProcess agent;
    auto id = agent.command(shell_request("id -u; id -g; id -G", R"("uid":12345,"gid":54321)"));
    CHECK(joined(id, "stdout") == "12345\n54321\n54321\n");
    auto same = agent.command(shell_request("id -u; id -g", R"("uid":12345)"));
    CHECK(joined(same, "stdout") == "12345\n12345\n");
}

TEST_CASE("Wrong bodies are refused in JSON before anything starts") {
    AgentProcess agent;
    for (const char* body : {"", "{", "[]", "{}", R"({"command":"a","timeout":-1})"}) {
        INFO(body);
        Reply reply = agent.call("POST", "/command", body);
        CHECK(reply.status == 400);
        CHECK(json::parse(reply.body));
    }
    Reply large = agent.call("POST", "/command",
                             R"({"command":")" + std::string(std::size_t{9} << 20, 'x') + "\"}");
    CHECK(large.status == 413);
    CHECK(json::parse(large.body));
}

TEST_CASE("A slow reader slows the command, and memory stays bounded") {
    AgentProcess agent;
    agent.command(shell_request("true"));
    long before = agent.anonymous_memory();
    RawConnection connection(agent.port());
    const std::string line(99, 'x');
    connection.send(post_command(shell_request("yes " + line + " | head -c 50000000")));
    std::string head = connection.receive(1000);
    ::usleep(300'000);
    long blocked = agent.anonymous_memory();
    CHECK(blocked - before < kAllocatorFactor * 3000);
    std::size_t lines = 0;
    std::string tail;
    long peak = blocked;
    for (std::string piece = head; !piece.empty(); piece = connection.receive(1 << 20)) {
        // What is counted already stays out of what is looked at next.
        std::size_t counted = tail.size() > 3 ? tail.size() - 3 : 0;
        tail += piece;
        for (std::size_t at = counted; (at = tail.find("\\n\",", at)) != std::string::npos; ++at) {
            ++lines;
        }
        tail.erase(0, tail.size() > 400 ? tail.size() - 400 : 0);
        peak = std::max(peak, agent.anonymous_memory());
        if (tail.ends_with("\r\n0\r\n\r\n")) break;
    }
    CHECK(lines == 500'000);
    CHECK(tail.find("execution_complete") != std::string::npos);
    CHECK(peak - before < kAllocatorFactor * 3000);
}

TEST_CASE("A command outlives its client, and its status can be asked") {
    AgentProcess agent;
    Scratch scratch;
    std::string id;
    {
        RawConnection connection(agent.port());
        connection.send(post_command(shell_request(
            "for i in 1 2 3 4 5 6 7 8; do head -c 100000 /dev/zero; sleep 0.05; done; touch " +
            scratch.at("done") + "; exit 5")));
        id = raw_id(connection.receive_until("timestamp"));
    }
    CHECK(eventually([&] { return std::filesystem::exists(scratch.at("done")); }));
    std::string status;
    CHECK(eventually([&] {
        status = agent.call("GET", "/command/status/" + id).body;
        return status.find("\"running\":false") != std::string::npos;
    }));
    CHECK(status.find("\"exit_code\":5") != std::string::npos);
    CHECK(status.find("\"error\":\"exit status 5\"") != std::string::npos);
    CHECK(status.find("finished_at") != std::string::npos);
}

TEST_CASE("A background command answers at once and keeps its output for its readers") {
    AgentProcess agent;
    Scratch scratch;
    auto events =
        agent.command(shell_request("echo one; echo two >&2; until test -e " + scratch.at("go") +
                                        "; do sleep 0.02; done; echo three; exit 4",
                                    "\"background\":true"));
    REQUIRE(events.size() == 2);
    CHECK(events[1].type == "execution_complete");
    std::string id = init_id(events);
    Reply first;
    CHECK(eventually([&] {
        first = agent.call("GET", "/command/" + id + "/logs");
        return first.body == "one\ntwo\n";
    }));
    CHECK(first.fields.get("EXECD-COMMANDS-TAIL-CURSOR") == "8");
    CHECK(agent.call("GET", "/command/status/" + id).body.find("\"running\":true") !=
          std::string::npos);
    scratch.file("go", "");
    CHECK(eventually([&] {
        return agent.call("GET", "/command/status/" + id).body.find("\"exit_code\":4") !=
               std::string::npos;
    }));
    Reply rest = agent.call("GET", "/command/" + id + "/logs?cursor=8");
    CHECK(rest.body == "three\n");
    CHECK(rest.fields.get("execd-commands-tail-cursor") == "14");
    CHECK(agent.call("GET", "/command/" + id + "/logs?cursor=99").body.empty());
    CHECK(agent.call("GET", "/command/" + id + "/logs?cursor=x").body == "one\ntwo\nthree\n");
    CHECK(agent.call("GET", "/command/" + id + "/logs?cursor=-1").status == 400);
    CHECK(agent.call("GET", "/command/none/logs").status == 404);
    CHECK(agent.call("GET", "/command/status/none").status == 404);
}

TEST_CASE("Daemons that a background command leaves behind survive it") {
    AgentProcess agent;
    Scratch scratch;
    auto events = agent.command(shell_request(
        "(sleep 0.3; touch " + scratch.at("alive") + ") & exit 0", "\"background\":true"));
    CHECK(events.back().type == "execution_complete");
    CHECK(eventually([&] { return std::filesystem::exists(scratch.at("alive")); }));
}

TEST_CASE("An interrupt ends the group and its stream") {
    AgentProcess agent;
    RawConnection connection(agent.port());
    connection.send(post_command(shell_request("sleep 60 & sleep 60")));
    std::string id = raw_id(connection.receive_until("timestamp"));
    CHECK(agent.call("DELETE", "/command?id=" + id).status == 200);
    std::string rest = connection.receive_until("\r\n0\r\n\r\n");
    CHECK(rest.find("\"evalue\":\"-1\",\"traceback\":[\"signal: terminated\"]") !=
          std::string::npos);
    CHECK(agent.call("GET", "/command/status/" + id).body.find("signal: terminated") !=
          std::string::npos);
    CHECK(agent.call("DELETE", "/command?id=" + id).status == 500);
    CHECK(agent.call("DELETE", "/command?id=none").status == 500);
    CHECK(agent.call("DELETE", "/command").status == 400);
    CHECK(agent.zombies() == 0);
}

TEST_CASE("An interrupt kills what ignores it") {
    AgentProcess agent;
    auto events = agent.command(shell_request(
        "trap '' TERM; echo up; while true; do sleep 0.1; done", "\"background\":true"));
    std::string id = init_id(events);
    REQUIRE(
        eventually([&] { return agent.call("GET", "/command/" + id + "/logs").body == "up\n"; }));
    CHECK(agent.call("DELETE", "/command?id=" + id).status == 200);
    CHECK(eventually([&] {
        return agent.call("GET", "/command/status/" + id).body.find("signal: killed") !=
               std::string::npos;
    }));
}

TEST_CASE("Many commands at once all end with their own code") {
    AgentProcess agent;
    std::vector<std::unique_ptr<RawConnection>> connections;
    for (int i = 0; i < 30; ++i) {
        connections.push_back(std::make_unique<RawConnection>(agent.port()));
        connections.back()->send(
            post_command(shell_request("echo out; sleep 0.1; exit " + std::to_string(i + 1))));
    }
    for (int i = 0; i < 30; ++i) {
        std::string all = connections[static_cast<std::size_t>(i)]->receive_until("\r\n0\r\n\r\n");
        INFO(all);
        CHECK(all.find("\"evalue\":\"" + std::to_string(i + 1) + "\"") != std::string::npos);
        CHECK(all.find("\"out\\n\"") != std::string::npos);
    }
    CHECK(agent.zombies() == 0);
}
