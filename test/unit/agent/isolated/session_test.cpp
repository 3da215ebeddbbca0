#include "isolated_agent.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

using namespace opensandbox::agent::testing;
namespace fs = std::filesystem;

TEST_CASE("isolated: capabilities say what this host can do", "[isolated]") {
    IsolatedAgent agent;
    Reply reply = agent.agent().call("GET", "/v1/isolated/capabilities");
    REQUIRE(reply.status == 200);
    CHECK(member(reply.body, "available") == "true");
    CHECK(member(reply.body, "isolator") == "opensandbox");
    CHECK(member(reply.body, "commit_supported") == "true");
    CHECK(member(reply.body, "diff_supported") == "true");
    CHECK(member(reply.body, "userns_available") == "true");
    CHECK(member(reply.body, "hardening").find("\"signal_shield\":true") != std::string::npos);
    // Finding out left nothing.
    CHECK(fs::is_empty(agent.uppers()));
}

TEST_CASE("isolated: a session runs code and goes away", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw");
    CHECK(agent.output(id, "echo hello; pwd") == "hello\n" + agent.workspace() + "\n");
    auto events = agent.run(id, "echo wrong >&2; exit 3");
    CHECK(joined(events, "stderr") == "wrong\n");
    CHECK(events.back().type == "error");
    CHECK(events.back().value == "3");
    Reply state = agent.call("GET", id, "");
    CHECK(state.status == 200);
    CHECK(member(state.body, "status") == "active");
    CHECK(member(state.body, "profile") == "strict");
    CHECK(state.body.find("\"idle_remaining_seconds\":null") != std::string::npos);
    Reply list = agent.agent().call("GET", "/v1/isolated/sessions");
    CHECK(list.body.find(id) != std::string::npos);
    CHECK(agent.call("DELETE", id, "").status == 200);
    CHECK(agent.call("GET", id, "").status == 404);
    CHECK(member(agent.call("GET", id, "").body, "code") == "CONTEXT_NOT_FOUND");
    CHECK(fs::is_empty(agent.uppers()));
}

TEST_CASE("isolated: variables, functions and the directory last from run to run", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw");
    auto first = agent.run(
        id, "export A=$'two\\nlines'; B=\"it's\"; f() { echo f:$1; }; mkdir -p d; cd d; umask 027",
        R"("envs":{"C":"from 'envs'"})");
    CHECK(exit_code(first) == 0);
    CHECK(agent.output(id, "echo \"$A\"; echo $B; f 1; pwd; umask; echo $C") ==
          "two\nlines\nit's\nf:1\n" + agent.workspace() + "/d\n0027\nfrom 'envs'\n");
    auto failing = agent.run(id, "D=kept; exit 4");
    CHECK(exit_code(failing) == 4);
    CHECK(agent.output(id, "echo $D") == "kept\n");
}
