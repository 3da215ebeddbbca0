#include "isolated_agent.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace opensandbox::agent::testing;
namespace fs = std::filesystem;

namespace {

std::string mounts() {
    std::ifstream in("/proc/self/mountinfo");
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Waits for the end of a background run and returns its status.
std::string status_at_end(IsolatedAgent& agent, const std::string& id, const std::string& run) {
    std::string body;
    CHECK(eventually([&] {
        body = agent.call("GET", id, "/runs/" + run).body;
        return body.find("\"running\":false") != std::string::npos;
    }));
    return body;
}

}  // namespace

TEST_CASE("isolated: a read-only workspace cannot be written, an overlay keeps to itself",
          "[isolated]") {
    IsolatedAgent agent;
    agent.scratch().file("ws/file", "below\n");
    std::string id = agent.session("ro");
    CHECK(agent.output(id, "cat file") == "below\n");
    CHECK(exit_code(agent.run(id, "echo x > file")) != 0);
    for (const char* persist : {"true", "false"}) {
        Reply made = agent.create(R"({"overlays":[{"path":")" + agent.workspace() +
                                  R"(","persist":)" + persist + "}]}");
        REQUIRE(made.status == 201);
        id = member(made.body, "session_id");
        CHECK(agent.output(id, "echo above > file; cat file; echo n > new; ls") ==
              "above\nfile\nnew\n");
        CHECK(agent.scratch().read("ws/file") == "below\n");
        CHECK_FALSE(fs::exists(agent.workspace() + "/new"));
    }
}

TEST_CASE("isolated: the environment is filtered as asked", "[isolated]") {
    IsolatedAgent agent;
    std::string all = agent.session("rw");
    CHECK(agent.output(all, "echo $HOME") == "/root\n");
    std::string none = agent.session("rw", R"("env_passthrough":{"mode":"allow","keys":["PATH"]})");
    CHECK(agent.output(none, "echo $HOME$PATH") == "/usr/local/bin:/usr/bin:/bin\n");
    std::string denied = agent.session("rw", R"("env_passthrough":{"keys":["HOME"]})");
    CHECK(agent.output(denied, "echo ${HOME-unset}") == "unset\n");
    CHECK(joined(agent.run(none, "echo $A; env | grep -c '^A='", R"("envs":{"A":"b c"})"),
                 "stdout") == "b c\n1\n");
}

TEST_CASE("isolated: a timeout interrupts the run and leaves the session", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw");
    auto events = agent.run(id, "echo begun; sleep 987", R"("timeout_seconds":1)");
    CHECK(joined(events, "stdout") == "begun\n");
    CHECK(events.back().type == "error");
    CHECK(events.back().name == "TimeoutError");
    auto deaf = agent.run(id, "trap '' INT; sleep 986 & wait; sleep 986", R"("timeout_seconds":1)");
    CHECK(deaf.back().name == "TimeoutError");
    CHECK(agent.output(id, "echo still here") == "still here\n");
}

TEST_CASE("isolated: runs of one session follow one another, sessions do not", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw");
    std::string other = agent.session("rw");
    std::thread first([&] {
        (void)agent.call("POST", id, "/run",
                         R"({"code":"while [ ! -e go ]; do sleep 0.02; done; echo 1 >> order"})");
    });
    std::thread second(
        [&] { (void)agent.call("POST", id, "/run", R"({"code":"echo 2 >> order"})"); });
    // Not behind the others.
    auto free = agent.call("POST", other, "/run", R"({"code":"touch go"})");
    first.join();
    second.join();
    CHECK(free.status == 200);
    std::string order = agent.scratch().read("ws/order");
    CHECK((order == "1\n2\n" || order == "2\n1\n"));
}

TEST_CASE("isolated: a reader that leaves cancels its run", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw");
    {
        RawConnection reader(agent.agent().port());
        std::string body = R"({"code":"echo begun; sleep 985"})";
        reader.send("POST /v1/isolated/session/" + id +
                    "/run HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
                    "\r\n\r\n" + body);
        CHECK(reader.receive_until("begun").find("begun") != std::string::npos);
    }
    CHECK(agent.output(id, "echo next") == "next\n");
    CHECK(eventually([] { return processes_with("sleep" + std::string(1, '\0') + "985") == 0; }));
}

TEST_CASE("isolated: background runs go on beside others, with their output and exit code",
          "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw");
    Reply started = agent.call(
        "POST", id, "/run",
        R"({"code":"echo out; echo err >&2; while [ ! -e go ]; do sleep 0.02; done; echo end; exit 7","background":true})");
    INFO(started.body);
    REQUIRE(started.status == 202);
    std::string run = member(started.body, "run_id");
    CHECK(member(started.body, "session_id") == id);
    CHECK(member(agent.call("GET", id, "/runs/" + run).body, "running") == "true");
    Reply page;
    CHECK(eventually([&] {
        page = agent.call("GET", id, "/runs/" + run + "/logs");
        return page.body == "out\nerr\n";
    }));
    std::string cursor(page.fields.get("EXECD-ISOLATED-TAIL-CURSOR").value_or(""));
    CHECK(cursor == "8");
    CHECK(agent.call("POST", id, "/commit").status == 400);  // no overlay
    CHECK(agent.output(id, "touch go; echo beside") == "beside\n");
    std::string status = status_at_end(agent, id, run);
    CHECK(status.find("\"exit_code\":7") != std::string::npos);
    CHECK(member(status, "finished_at").size() > 10);
    CHECK(agent.call("GET", id, "/runs/" + run + "/logs?cursor=" + cursor).body == "end\n");
    CHECK(agent.call("GET", id, "/runs/" + run + "/logs?cursor=x").status == 400);
    CHECK(agent.call("GET", id, "/runs/11111111-1111-1111-1111-111111111111").status == 404);

    std::string ro = agent.session("ro");
    CHECK(agent.call("POST", ro, "/run", R"({"code":"true","background":true})").status == 400);
}

TEST_CASE("isolated: a commit waits for no background run but says so", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("overlay");
    Reply started = agent.call("POST", id, "/run", R"({"code":"sleep 984","background":true})");
    REQUIRE(started.status == 202);
    CHECK(agent.call("POST", id, "/commit").status == 409);
    CHECK(agent.call("GET", id, "/diff").status == 200);
}

TEST_CASE("isolated: an idle session goes away, one with a background run does not", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("overlay", R"("idle_timeout_seconds":1)");
    std::string busy = agent.session("rw", R"("idle_timeout_seconds":1)");
    Reply started =
        agent.call("POST", busy, "/run",
                   R"({"code":"while [ ! -e go ]; do sleep 0.02; done","background":true})");
    REQUIRE(started.status == 202);
    CHECK(eventually([&] { return agent.call("GET", id, "").status == 404; }));
    CHECK(agent.call("GET", busy, "").status == 200);
    std::ofstream(agent.workspace() + "/go") << "";
    CHECK(eventually([&] { return agent.call("GET", busy, "").status == 404; }));
    CHECK(eventually([&] { return fs::is_empty(agent.uppers()); }));
}

TEST_CASE("isolated: a session over its limit of bytes runs nothing until it is below",
          "[isolated]") {
    IsolatedAgent agent("upper_max_bytes = 1048576\n");
    std::string id = agent.session("overlay");
    CHECK(exit_code(agent.run(id, "head -c 3000000 /dev/zero > big")) == 0);
    Reply refused = agent.call("POST", id, "/run", R"({"code":"true"})");
    CHECK(refused.status == 500);
    CHECK(refused.body.find("upper_max_bytes") != std::string::npos);
    CHECK(agent.call("POST", id, "/run", R"({"code":"true","background":true})").status == 500);
    CHECK(agent.call("DELETE", id, "/files?path=" + agent.workspace() + "/big").status == 200);
    CHECK(agent.output(id, "echo again") == "again\n");
    // What is in memory ends at the limit by itself.
    CHECK(exit_code(agent.run(id, "head -c 3000000 /dev/zero > /tmp/big")) != 0);
}

TEST_CASE("isolated: nothing is left of a session that was deleted", "[isolated]") {
    IsolatedAgent agent;
    std::string before = mounts();
    std::string id = agent.session("overlay");
    CHECK(exit_code(agent.run(id, "setsid sleep 983 >/dev/null 2>&1 & sleep 983 & echo x > x")) ==
          0);
    Reply started = agent.call("POST", id, "/run", R"({"code":"sleep 983","background":true})");
    REQUIRE(started.status == 202);
    CHECK(eventually([] { return processes_with("sleep" + std::string(1, '\0') + "983") == 3; }));
    CHECK(agent.call("DELETE", id, "").status == 200);
    CHECK(processes_with("sleep" + std::string(1, '\0') + "983") == 0);
    CHECK(fs::is_empty(agent.uppers()));
    CHECK(mounts() == before);
    CHECK(agent.agent().zombies() == 0);
    CHECK(agent.agent().call("GET", "/v1/isolated/sessions").body == R"({"sessions":[]})");
}

TEST_CASE("isolated: nothing is left when the agent ends or is killed", "[isolated]") {
    IsolatedAgent agent;
    std::string before = mounts();
    auto fill = [&](const std::string& seconds) {
        std::string id = agent.session("overlay");
        CHECK(exit_code(
                  agent.run(id, "setsid sleep " + seconds + " >/dev/null 2>&1 & echo x > x")) == 0);
    };
    fill("982");
    agent.agent().signal(SIGTERM);
    CHECK(agent.agent().wait() == 0);
    CHECK(processes_with("sleep" + std::string(1, '\0') + "982") == 0);
    CHECK(fs::is_empty(agent.uppers()));

    agent.restart();
    fill("981");
    agent.agent().signal(SIGKILL);
    CHECK(agent.agent().wait() == 128 + SIGKILL);
    CHECK(eventually([] { return processes_with("sleep" + std::string(1, '\0') + "981") == 0; }));
    CHECK_FALSE(fs::is_empty(agent.uppers()));
    agent.restart();
    // The next one clears away what it could not.
    std::string id = agent.session("overlay");
    std::size_t directories = 0;
    for (const auto& entry : fs::directory_iterator(agent.uppers()))
        directories += entry.path().filename() == id ? 1 : 100;
    CHECK(directories == 1);
    CHECK(mounts() == before);
}

TEST_CASE("isolated: a session whose first process died says so", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw");
    std::string children = "/proc/" + std::to_string(agent.agent().pid()) + "/task/" +
                           std::to_string(agent.agent().pid()) + "/children";
    std::ifstream in(children);
    pid_t first = 0;
    REQUIRE(in >> first);
    ::kill(first, SIGKILL);
    CHECK(eventually([&] { return member(agent.call("GET", id, "").body, "status") == "dead"; }));
    CHECK(agent.call("POST", id, "/run", R"({"code":"true"})").status == 404);
    CHECK(agent.call("DELETE", id, "").status == 200);
}
