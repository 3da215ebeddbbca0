#include "unit/agent/code/code_run.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

TEST_CASE("bash keeps variables, functions, options and directory between cells") {
    AgentProcess agent;
    std::string id = make_context(agent, "bash");
    run_code(agent, id,
             "x=5; declare -A m=([a]='1 2' [b]=$'q\\nz'); cd /usr; alias ll='ls -l'\n"
             "f() { echo \"f $x\"; }; shopt -s extglob; export E=$'two\\nlines'");
    CodeRun run =
        run_code(agent, id, "f; echo \"${m[b]}\"; pwd; alias ll; sh -c 'echo \"$E\"'; cat");
    CHECK(run.output == "f 5\nq\nz\n/usr\nalias ll='ls -l'\ntwo\nlines\n");
    CHECK(run.complete());
    CHECK(run_code(agent, id, "echo out; echo err >&2").errors == "err\n");
}

TEST_CASE("A bash cell that fails is an error with its exit code") {
    AgentProcess agent;
    std::string id = make_context(agent, "bash");
    CodeRun failed = run_code(agent, id, "(exit 7)");
    CHECK(failed.name == "CommandExecError");
    CHECK(failed.value == "7");
    CHECK(failed.trace == std::vector<std::string>{"exit status 7"});
    CHECK(run_code(agent, id, "echo $?").output == "7\n");
    CodeRun syntax = run_code(agent, id, "if");
    CHECK(syntax.value == "2");
    CHECK(syntax.errors.find("syntax error") != std::string::npos);
}

TEST_CASE("exit, a fatal error and an interrupt do not lose the state of bash") {
    AgentProcess agent;
    std::string id = make_context(agent, "bash");
    run_code(agent, id, "f() { echo \"f $x\"; }; declare -A m=([k]=$'a\\nb'); cd /usr; x=1");
    CodeRun left = run_code(agent, id, "x=2; exit 3");
    CHECK(left.value == "3");
    CodeRun after = run_code(agent, id, "f; pwd; echo \"${m[k]}\"");
    CHECK(after.output == "f 2\n/usr\na\nb\n");
    CHECK(after.errors.empty());
    CHECK(run_code(agent, id, "x=3; exit").complete());
    CHECK(run_code(agent, id, "x=4; set -u; echo $nothing").last == "error");
    CHECK(run_code(agent, id, "set +u; x=5; set -e; false; x=6").value == "1");
    CHECK(run_code(agent, id, "set +e; f").output == "f 5\n");
    for (const char* code : {"echo up; sleep 60", "echo up; while :; do :; done"}) {
        RunningCode run(agent, id, code, "up\\n");
        CHECK(agent.call("DELETE", "/code?id=" + id).status == 200);
        CHECK(run.finish().last == "error");
    }
    CHECK(run_code(agent, id, "f").output == "f 5\n");
    CHECK(run_code(agent, id, "kill -9 $$").name == "InterpreterDied");
    CHECK(run_code(agent, id, "echo \"[$x]\"").output == "[]\n");
}

TEST_CASE("What a bash cell leaves in the background neither delays nor disturbs") {
    AgentProcess agent;
    Scratch scratch;
    std::string id = make_context(agent, "bash", scratch.path());
    CHECK(run_code(agent, id,
                   "(until test -e go; do sleep 0.02; done; echo late; touch done) & echo now")
              .output == "now\n");
    scratch.file("go", "");
    CHECK(run_code(agent, id, "until test -e done; do sleep 0.02; done").complete());
    // More than a pipe holds, with nobody reading.
    run_code(agent, id, "(head -c 300000 /dev/zero; touch loud) &");
    CHECK(eventually([&] {
        return !scratch.read("loud").empty() || ::access(scratch.at("loud").c_str(), F_OK) == 0;
    }));
    CHECK(run_code(agent, id, "echo clean").output == "clean\n");
}
