#include "agent/code/contexts.hpp"
#include "json/document.hpp"
#include "unit/agent/code/code_run.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <set>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

void check_error(const Reply& reply, int status, const char* code) {
    INFO(reply.body);
    CHECK(reply.status == status);
    auto body = json::parse(reply.body);
    REQUIRE(body);
    CHECK(body->at("code") == code);
}

std::size_t context_count(const AgentProcess& agent, const std::string& query = {}) {
    Reply reply = agent.call("GET", "/code/contexts" + query);
    REQUIRE(reply.status == 200);
    return json::parse(reply.body)->get_array().size();
}

}  // namespace

TEST_CASE("Bodies and queries of the code routes are checked") {
    AgentProcess agent;
    for (const char* body :
         {"", "[]", "{}", R"({"code":""})", R"({"code":7})", R"({"code":"1","context":[]})",
          R"({"code":"1","context":{"id":4}})"}) {
        INFO(body);
        check_error(agent.call("POST", "/code", body), 400, "INVALID_REQUEST_BODY");
    }
    for (const char* body : {"", "{}", R"({"language":3})", R"({"language":"python","cwd":3})",
                             R"({"language":"python","cwd":"$UNSET_VARIABLE/x"})"}) {
        INFO(body);
        check_error(agent.call("POST", "/code/context", body), 400, "INVALID_REQUEST_BODY");
    }
    check_error(agent.call("POST", "/code/context", R"({"language":"cobol"})"), 500,
                "RUNTIME_ERROR");
    check_error(agent.call("DELETE", "/code"), 400, "MISSING_QUERY");
    check_error(agent.call("DELETE", "/code?id=unknown"), 500, "RUNTIME_ERROR");
    check_error(agent.call("DELETE", "/code/contexts"), 400, "MISSING_QUERY");
    for (const char* method : {"GET", "DELETE"}) {
        check_error(agent.call(method, "/code/contexts?language=sql"), 500, "RUNTIME_ERROR");
        check_error(agent.call(method, "/code/contexts?language=command"), 500, "RUNTIME_ERROR");
        check_error(agent.call(method, "/code/contexts/unknown"), 404, "CONTEXT_NOT_FOUND");
    }
    check_error(agent.call("POST", "/code", code_request("unknown", "python", "1")), 404,
                "CONTEXT_NOT_FOUND");
    CHECK(agent.call("GET", "/code/contexts").body == "[]");
    CHECK(agent.call("DELETE", "/code/contexts?language=python").status == 200);
}

TEST_CASE("Code without a language is a command, other languages are refused by name") {
    AgentProcess agent;
    for (const char* language : {"", "command"}) {
        Reply reply = agent.call("POST", "/code", code_request("", language, "echo $((1 + 1))"));
        auto events = parse_events(reply.body);
        CHECK(joined(events, "stdout") == "2\n");
        CHECK(events.back().type == "execution_complete");
        CHECK(agent.call("GET", "/command/status/" + events.front().text).status == 200);
    }
    Reply background =
        agent.call("POST", "/code", code_request("", "background-command", "echo later"));
    auto events = parse_events(background.body);
    REQUIRE(events.size() == 2);
    std::string logs = "/command/" + events.front().text + "/logs";
    CHECK(eventually([&] { return agent.call("GET", logs).body == "later\n"; }));
    Reply sql = agent.call("POST", "/code", code_request("", "sql", "SELECT 1"));
    check_error(sql, 500, "RUNTIME_ERROR");
    CHECK(sql.body.find("no SQL client") != std::string::npos);
    Reply unknown = agent.call("POST", "/code", code_request("", "cobol", "1"));
    check_error(unknown, 500, "RUNTIME_ERROR");
    CHECK(unknown.body.find("error running codes unknown language: cobol") != std::string::npos);
}

TEST_CASE("Contexts are made, listed, asked for and deleted") {
    AgentProcess agent;
    std::string one = make_context(agent, "bash");
    std::string two = make_context(agent, "bash");
    CodeRun run = run_default(agent, "python", "1");
    CHECK(context_count(agent) == 3);
    CHECK(context_count(agent, "?language=bash") == 2);
    CHECK(agent.call("GET", "/code/contexts?language=java").body == "[]");
    CHECK(agent.call("GET", "/code/contexts/" + one).body ==
          R"({"id":")" + one + R"(","language":"bash"})");
    CHECK(run_default(agent, "python", "2").id == run.id);
    run_code(agent, one, "x=1");
    CHECK(run_code(agent, two, "echo [$x]").output == "[]\n");
    CHECK(agent.call("DELETE", "/code/contexts/" + one).status == 200);
    check_error(agent.call("DELETE", "/code/contexts/" + one), 404, "CONTEXT_NOT_FOUND");
    CHECK(agent.call("DELETE", "/code/contexts?language=bash").status == 200);
    CHECK(context_count(agent) == 1);
    // A default context that was deleted is made again.
    CHECK(agent.call("DELETE", "/code/contexts/" + run.id).status == 200);
    CHECK(run_default(agent, "python", "3").id != run.id);
}

TEST_CASE("Runs of one context wait for each other, those of others do not") {
    AgentProcess agent;
    Scratch scratch;
    std::string id = make_context(agent, "bash", scratch.path());
    RunningCode first(agent, id,
                      "echo up; until test -e go; do sleep 0.02; done; echo first >> log", "up\\n");
    // The second stream begins at once although its run waits.
    RunningCode second(agent, id, "echo second >> log", "pong");
    RunningCode third(agent, id, "cat log", "pong");
    CHECK(run_default(agent, "bash", "echo other").output == "other\n");
    scratch.file("go", "");
    CHECK(first.finish().complete());
    CHECK(second.finish().complete());
    CHECK(third.finish().output == "first\nsecond\n");
}

TEST_CASE("Many clients get the same default context") {
    AgentProcess agent;
    std::vector<std::thread> threads;
    std::vector<std::string> ids(8);
    for (std::string& id : ids) {
        threads.emplace_back([&agent, &id] {
            Reply reply = agent.call("POST", "/code", code_request("", "bash", "true"));
            id = reply.body.substr(0, 60);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == 1);
    CHECK(context_count(agent) == 1);
}

TEST_CASE("A run goes on when its reader leaves, and the next one waits for it") {
    AgentProcess agent;
    Scratch scratch;
    std::string id = make_context(agent, "bash", scratch.path());
    {
        RunningCode left(agent, id,
                         "echo up; until test -e go; do sleep 0.02; done\n"
                         "head -c 1000000 /dev/zero | tr '\\0' x; echo end >> log",
                         "up\\n");
    }
    RunningCode next(agent, id, "cat log", "pong");
    scratch.file("go", "");
    CHECK(next.finish().output == "end\n");
}

TEST_CASE("Deleting a context ends its run and those that wait") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    RunningCode run(agent, id, "import time\nprint('up')\ntime.sleep(60)", "up\\n");
    RunningCode waiting(agent, id, "1", "pong");
    CHECK(agent.call("DELETE", "/code/contexts/" + id).status == 200);
    CHECK(run.finish().last == "error");
    CodeRun refused = waiting.finish();
    CHECK(refused.last == "error");
    CHECK(refused.value.find("deleted") != std::string::npos);
    CHECK(context_count(agent) == 0);
}

TEST_CASE("A missing interpreter is named when the context is made") {
    AgentOptions options;
    options.environment = {{"PATH", "/no/such/directory"}, {"HOME", "/root"}};
    AgentProcess agent(std::move(options));
    for (const char* language : {"python", "javascript", "typescript", "bash", "java", "go"}) {
        INFO(language);
        Reply reply =
            agent.call("POST", "/code/context", std::string(R"({"language":")") + language + "\"}");
        check_error(reply, 500, "RUNTIME_ERROR");
        CHECK(reply.body.find(language) != std::string::npos);
        CHECK(reply.body.find("looked for") != std::string::npos);
        CHECK(agent.call("POST", "/code", code_request("", language, "1")).status == 500);
    }
    CHECK(context_count(agent) == 0);
}

TEST_CASE("The number of contexts has a limit that is said") {
    AgentProcess agent;
    for (std::size_t i = 0; i < CodeContexts::kMax; ++i)
        make_context(agent, "bash");
    Reply refused = agent.call("POST", "/code/context", R"({"language":"bash"})");
    check_error(refused, 500, "RUNTIME_ERROR");
    CHECK(refused.body.find("64 code contexts") != std::string::npos);
    CHECK(agent.call("DELETE", "/code/contexts?language=bash").status == 200);
    make_context(agent, "bash");
}

TEST_CASE("The end of the agent ends interpreters and their streams") {
    AgentProcess agent;
    std::string id = make_context(agent, "python");
    CodeRun own = run_code(agent, id, "import os, subprocess, time\nos.getpid()");
    CodeRun child = run_code(agent, id, "subprocess.Popen(['sleep', '600']).pid");
    RunningCode run(agent, id, "print('up')\ntime.sleep(60)", "up\\n");
    agent.signal(SIGTERM);
    CHECK(run.finish().last == "error");
    CHECK(agent.wait() == 0);
    for (const std::string& pid : {own.text, child.text}) {
        CHECK(eventually([&] { return ::kill(std::stoi(pid), 0) != 0; }));
    }
}
