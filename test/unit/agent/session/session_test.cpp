#include "agent/session/shell_state.hpp"
#include "json/document.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

/// A session of an agent.
class TestSession {
  public:
    explicit TestSession(const AgentProcess& agent, const std::string& body = {}) : agent_(agent) {
        Reply reply = agent.call("POST", "/session", body);
        INFO(reply.body);
        REQUIRE(reply.status == 200);
        id_ = json::parse(reply.body)->at("session_id").get_string();
    }
    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] std::string target() const { return "/session/" + id_ + "/run"; }
    std::vector<StreamEvent> run(const std::string& text, const std::string& more = {}) const {
        Reply reply = agent_.call("POST", target(), shell_request(text, more));
        INFO(reply.body.substr(0, 500));
        REQUIRE(reply.status == 200);
        return parse_events(reply.body);
    }
    /// Standard output of a run.
    [[nodiscard]] std::string output(const std::string& text, const std::string& more = {}) const {
        auto events = run(text, more);
        INFO(joined(events, "stderr"));
        return joined(events, "stdout");
    }
    /// A run whose answer nobody has read yet.
    void begin(const RawConnection& connection, const std::string& text,
               const std::string& more = {}) const {
        std::string body = shell_request(text, more);
        connection.send("POST " + target() + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                        std::to_string(body.size()) + "\r\n\r\n" + body);
    }

  private:
    const AgentProcess& agent_;
    std::string id_;
};

/// An agent whose PATH has every program of /usr/bin and /bin but bash.
class WithoutBash {
  public:
    WithoutBash() {
        for (const char* directory : {"/bin", "/usr/bin"}) {
            for (const auto& entry : std::filesystem::directory_iterator(directory)) {
                std::string name = entry.path().filename();
                std::error_code taken;
                if (name != "bash")
                    std::filesystem::create_symlink(entry.path(), scratch_.at(name), taken);
            }
        }
        AgentOptions options;
        options.environment = {{"PATH", scratch_.path()}, {"HOME", "/root"}};
        agent_.emplace(std::move(options));
    }
    [[nodiscard]] const AgentProcess& agent() const { return *agent_; }

  private:
    Scratch scratch_;
    std::optional<AgentProcess> agent_;
};

}  // namespace

TEST_CASE("Words are quoted for the shell") {
    CHECK(quote_for_shell("") == "''");
    CHECK(quote_for_shell("a b$c`d`\n\"e\"") == "'a b$c`d`\n\"e\"'");
    CHECK(quote_for_shell("it's") == "'it'\\''s'");
}

TEST_CASE("A session keeps directory and variables from run to run") {
    AgentProcess agent;
    TestSession session(agent);
    auto first = session.run("cd /usr/share; export A=1; b=2; echo here; echo there >&2");
    CHECK(first.front().type == "init");
    CHECK(first.front().text == session.id());
    CHECK(joined(first, "stdout") == "here\n");
    CHECK(joined(first, "stderr") == "there\n");
    CHECK(first.back().type == "execution_complete");
    CHECK(session.output("pwd; echo $A$b; sh -c 'echo $A${b-unset}'") ==
          "/usr/share\n12\n1unset\n");
    CHECK(session.output("cd /usr; cd - >/dev/null; pwd; cd -") == "/usr/share\n/usr\n");
    CHECK(session.output("pwd; cd -") == "/usr\n/usr/share\n");
}

TEST_CASE("Values of any bytes and any length come through a session whole") {
    AgentProcess agent;
    TestSession session(agent);
    session.run(R"(
export LINES_OF=$'one\n\ntwo \'quoted\' "double" $HOME `id`\n\n'
raw=$'\001\377\200\033[0m\t\\ \x7f'
printf -v long '%*s' 300000 ''
long=${long// /ab$'\n'}
empty=
declare -a list=(a 'b c' $'d\ne' '')
list[9]=nine
declare -A map=([k 1]='v 1' ["]"]='$x' [$'n\nl']=y)
declare -i number=7
declare -r fixed=rock
declare -n alias_of=empty
declare -x unset_but_exported
declare -u loud=shout
)");
    CHECK(session.output("printf %s \"$LINES_OF\"") ==
          "one\n\ntwo 'quoted' \"double\" $HOME `id`\n\n");
    CHECK(session.output("printf %s \"$raw\" | od -An -tx1 | tr -d ' \\n'") ==
          "01ff801b5b306d095c207f");
    CHECK(session.output("echo ${#long}; printf %s \"$long\" | md5sum") ==
          session.output("printf -v again '%*s' 300000 ''; again=${again// /ab$'\\n'}\n"
                         "echo ${#again}; printf %s \"$again\" | md5sum"));
    CHECK(session.output("echo ${empty-gone}; echo ${#list[@]} ${list[1]} ${list[9]}") ==
          "\n5 b c nine\n");
    CHECK(session.output("for k in 'k 1' ']' $'n\\nl'; do echo \"${map[$k]}\"; done") ==
          "v 1\n$x\ny\n");
    CHECK(
        session.output("number=number+1; echo $number; alias_of=changed; echo $empty; loud=a; echo "
                       "$loud") == "8\nchanged\nA\n");
    CHECK(session.output("(fixed=x) 2>/dev/null || echo fast; echo $fixed $empty") ==
          "fast\nrock changed\n");
    CHECK(session.output("env | grep -c '^long=' ; env | grep -c '^LINES_OF='") == "0\n1\n");
}

TEST_CASE("Functions, aliases, options and umask belong to a session") {
    AgentProcess agent;
    TestSession session(agent);
    session.run(R"(
greet() { local who=$1; cat <<END
hello $who
END
}
shared() { echo shared; }
export -f shared
shopt -s extglob nullglob
eval 'star() { [[ $1 == +(a|b) ]] && echo ab; }'
alias say='echo said'
set -o pipefail -f
umask 027
)");
    CHECK(session.output("greet you; star abab; say it") == "hello you\nab\nsaid it\n");
    CHECK(session.output("bash -c shared; bash -c greet 2>/dev/null || echo own") ==
          "shared\nown\n");
    CHECK(session.output("umask; set -o | grep -E 'pipefail|noglob'; shopt nullglob") ==
          "0027\nnoglob         \ton\npipefail       \ton\nnullglob       \ton\n");
    session.run("unset -f greet; unalias say; shopt -u nullglob; set +o pipefail; unset HOME");
    CHECK(session.output("type greet say 2>/dev/null; shopt nullglob; set -o | grep pipefail; echo "
                         "${HOME-nowhere}") ==
          "nullglob       \toff\npipefail       \toff\nnowhere\n");
}

TEST_CASE("Options that watch every command do not watch the session itself") {
    AgentProcess agent;
    TestSession session(agent);
    session.run("set -x");
    auto traced = session.run("echo a; f() { echo b; }; f");
    CHECK(joined(traced, "stdout") == "a\nb\n");
    CHECK(joined(traced, "stderr") == "++ echo a\n++ f\n++ echo b\n");
    CHECK(joined(session.run("set +x; set -eu"), "stderr") == "++ set +x\n");
    auto failed = session.run("kept=1; false; echo not reached");
    CHECK(failed.back().value == "1");
    CHECK(joined(failed, "stdout").empty());
    auto unset = session.run("echo $kept; echo $no_such_thing");
    CHECK(joined(unset, "stdout") == "1\n");
    CHECK(unset.back().value == "1");
    CHECK(session.output("set +eu; false; echo on") == "on\n");
    session.run("set -o posix; posixly() { echo p; }");
    CHECK(session.output("posixly; shopt -qo posix && echo still") == "p\nstill\n");
}

TEST_CASE("A run that exits keeps its state and gives its code") {
    AgentProcess agent;
    TestSession session(agent);
    auto events = session.run("cd /usr; X=5; exit 9");
    CHECK(events.back().type == "error");
    CHECK(events.back().name == "CommandExecError");
    CHECK(events.back().value == "9");
    CHECK(session.output("pwd; echo $X") == "/usr\n5\n");
    // What is local to the functions on the way out stays theirs.
    auto deep = session.run(
        "Y=global; die() { local Y=mine message=$1; X=6; exit 3; }\n"
        "outer() { local X2=1; die now; }; outer");
    CHECK(deep.back().value == "3");
    CHECK(session.output("echo $X $Y ${message-none} ${X2-none}") == "6 global none none\n");
    CHECK(session.run("X=7; (exit 4)").back().value == "4");
    CHECK(session.output("echo $X") == "7\n");
    auto wrong = session.run("X=8\nif; then");
    CHECK(wrong.back().value == "2");
    CHECK(joined(wrong, "stderr").find("line 2:") != std::string::npos);
    CHECK(session.output("echo $X") == "8\n");
}

TEST_CASE("Errors name the lines of the text") {
    AgentProcess agent;
    TestSession session(agent);
    for (int i = 0; i < 2; ++i) {
        auto events = session.run("no_such_program\n\nno_such_either; a=1");
        CHECK(joined(events, "stderr") ==
              "bash: line 1: no_such_program: command not found\n"
              "bash: line 3: no_such_either: command not found\n");
        CHECK(session.output("echo $LINENO\necho $LINENO $0 $#") == "1\n2 bash 0\n");
    }
}

TEST_CASE("Nothing that a program prints passes for a session's state") {
    AgentProcess agent;
    TestSession session(agent);
    session.run("cd /usr; secret=old");
    // A child sees neither descriptor nor mark.
    CHECK(session.output(
              "secret=new; (ls /proc/self/fd | tr '\\n' ' '); env | grep -c opensandbox") ==
          "0 1 2 3 0\n");
    session.run(
        "for fd in 1 2 3 4 5 6 7 8 9 10 11; do { printf 'x\\0/\\0\\0\\0secret=fake\\0\\0x\\0' "
        ">&$fd; } 2>/dev/null; done; printf '/tmp\\0declare -x secret=fake\\0'");
    CHECK(session.output("pwd; echo $secret") == "/usr\nnew\n");
    auto events = session.run(
        "bash -c 'for fd in 3 4 10 11; do printf \"x\\0/\\0\\0\\0secret=fake\\0\\0"
        "x\\0\" >&$fd; done' 2>/dev/null; true");
    CHECK(events.back().type == "execution_complete");
    CHECK(session.output("echo $secret; compgen -v | grep -c opensandbox") == "new\n0\n");
}

TEST_CASE("A run has no input, and reads its here-documents") {
    AgentProcess agent;
    TestSession session(agent);
    CHECK(session.output("cat; read x || echo end; cat <<A\nin\nA\nread y <<< word; echo $y") ==
          "end\nin\nword\n");
}

TEST_CASE("A text of megabytes runs and is not seen among the arguments") {
    AgentProcess agent;
    TestSession session(agent);
    std::string text = "tr '\\0' ' ' < /proc/$$/cmdline | grep -c HIDDEN_WORD; x='" +
                       std::string(3'000'000, 'y') + "'; echo ${#x}";
    CHECK(session.output(text) == "0\n3000000\n");
    CHECK(session.output("echo ${#x}") == "3000000\n");
}

TEST_CASE("A timeout ends the group of a run with code 124 and leaves the session as it was") {
    AgentProcess agent;
    TestSession session(agent);
    Scratch scratch;
    session.run("X=before");
    auto events =
        session.run("X=after; (sleep 1; touch " + scratch.at("late") + ") & echo up; sleep 60",
                    "\"timeout\":200");
    CHECK(joined(events, "stdout") == "up\n");
    CHECK(events.back().type == "error");
    CHECK(events.back().name == "CommandExecError");
    CHECK(events.back().value == "124");
    CHECK(events.back().trace.find("timeout") != std::string::npos);
    CHECK(session.output("echo $X") == "before\n");
    ::usleep(1'200'000);
    CHECK_FALSE(std::filesystem::exists(scratch.at("late")));
    auto killed = session.run("X=after; kill -KILL $$");
    CHECK(killed.back().value == "-1");
    CHECK(session.output("echo $X") == "before\n");
    CHECK(agent.zombies() == 0);
}

TEST_CASE("Children in the background neither hold a run up nor die of its end") {
    AgentProcess agent;
    TestSession session(agent);
    Scratch scratch;
    auto events =
        session.run("(sleep 0.4; echo late; touch " + scratch.at("alive") + ") & X=1; echo now");
    CHECK(joined(events, "stdout") == "now\n");
    CHECK(events.back().type == "execution_complete");
    CHECK(session.output("echo $X") == "1\n");
    CHECK(eventually([&] { return std::filesystem::exists(scratch.at("alive")); }));
}

TEST_CASE("A directory given for one run is left again") {
    AgentProcess agent;
    Scratch scratch;
    TestSession session(agent, R"({"cwd":")" + scratch.at("a/b") + "\"}");
    CHECK(session.output("pwd") == scratch.at("a/b") + "\n");
    CHECK(session.output("pwd; echo $PWD; X=1", R"("cwd":"/usr")") == "/usr\n/usr\n");
    CHECK(session.output("pwd; echo $PWD $X") ==
          scratch.at("a/b") + "\n" + scratch.at("a/b") + " 1\n");
    session.run("cd share", R"("cwd":"/usr")");
    CHECK(session.output("pwd; cd -") == "/usr/share\n/usr\n");
    Reply missing =
        agent.call("POST", session.target(), shell_request("pwd", R"("cwd":"/no/such")"));
    CHECK(missing.status == 400);
    CHECK(json::parse(missing.body)->at("code") == "INVALID_REQUEST_BODY");
}

TEST_CASE("A session whose directory is gone says so and goes on") {
    AgentProcess agent;
    Scratch scratch;
    TestSession session(agent, R"({"cwd":")" + scratch.at("start") + "\"}");
    session.run("mkdir inner; cd inner; rmdir ../inner; X=1");
    auto events = session.run("pwd; echo $PWD $X");
    CHECK(joined(events, "stdout") == scratch.at("start") + "\n" + scratch.at("start") + " 1\n");
    CHECK(joined(events, "stderr").find(scratch.at("start/inner") + " is gone") !=
          std::string::npos);
    CHECK(joined(session.run("cd /; rmdir " + scratch.at("start")), "stderr").empty());
    CHECK(session.output("pwd") == "/\n");
}

TEST_CASE("Runs of one session wait for each other, in order") {
    AgentProcess agent;
    TestSession session(agent);
    Scratch scratch;
    session.run("n=0");
    std::vector<std::unique_ptr<RawConnection>> connections;
    for (int i = 0; i < 8; ++i) {
        connections.push_back(std::make_unique<RawConnection>(agent.port()));
        session.begin(*connections.back(), "sleep 0.02; n=$((n + 1)); echo \"<$n>\"");
        // Every reader is answered at once, whoever runs.
        CHECK(connections.back()->receive_until("pong").find("\"init\"") != std::string::npos);
    }
    for (int i = 0; i < 8; ++i) {
        std::string all = connections[static_cast<std::size_t>(i)]->receive_until("\r\n0\r\n\r\n");
        INFO(all);
        CHECK(all.find("<" + std::to_string(i + 1) + ">") != std::string::npos);
    }
    CHECK(session.output("echo $n") == "8\n");
    // Two sessions do not wait for each other.
    TestSession other(agent);
    RawConnection slow(agent.port());
    session.begin(slow, "echo up; until test -e " + scratch.at("go") + "; do sleep 0.02; done");
    slow.receive_until("up");
    CHECK(other.output("echo free") == "free\n");
    scratch.file("go", "");
    CHECK(slow.receive_until("\r\n0\r\n\r\n").find("execution_complete") != std::string::npos);
}

TEST_CASE("Too many waiting runs are refused") {
    AgentProcess agent;
    TestSession session(agent);
    std::vector<std::unique_ptr<RawConnection>> connections;
    for (int i = 0; i < 65; ++i) {
        connections.push_back(std::make_unique<RawConnection>(agent.port()));
        session.begin(*connections.back(), "sleep 60");
        connections.back()->receive_until("pong");
    }
    Reply refused = agent.call("POST", session.target(), shell_request("true"));
    CHECK(refused.status == 500);
    CHECK(refused.body.find("waiting") != std::string::npos);
    CHECK(agent.call("DELETE", "/session/" + session.id()).status == 200);
    for (auto& connection : connections) {
        CHECK(connection->receive_until("\r\n0\r\n\r\n").find("deleted") != std::string::npos);
    }
}

TEST_CASE("A client that leaves ends its run, and the next one begins") {
    AgentProcess agent;
    TestSession session(agent);
    Scratch scratch;
    {
        RawConnection leaving(agent.port());
        session.begin(leaving,
                      "X=lost; echo up; (sleep 1; touch " + scratch.at("late") + ") & sleep 60");
        leaving.receive_until("up");
        RawConnection waiting(agent.port());
        session.begin(waiting, "touch " + scratch.at("never"));
        waiting.receive_until("pong");
    }
    CHECK(session.output("echo ${X-unchanged}") == "unchanged\n");
    ::usleep(1'200'000);
    CHECK_FALSE(std::filesystem::exists(scratch.at("late")));
    CHECK_FALSE(std::filesystem::exists(scratch.at("never")));
    CHECK(agent.zombies() == 0);
}

TEST_CASE("A session that is deleted ends its run and is not known any more") {
    AgentProcess agent;
    for (bool through_command : {false, true}) {
        TestSession session(agent);
        RawConnection running(agent.port());
        session.begin(running, "echo up; sleep 60");
        running.receive_until("up");
        std::string target =
            through_command ? "/command?id=" + session.id() : "/session/" + session.id();
        CHECK(agent.call("DELETE", target).status == 200);
        std::string rest = running.receive_until("\r\n0\r\n\r\n");
        CHECK(rest.find("\"ename\":\"CommandExecError\"") != std::string::npos);
        CHECK(rest.find("deleted") != std::string::npos);
        Reply again = agent.call("DELETE", "/session/" + session.id());
        CHECK(again.status == 404);
        CHECK(json::parse(again.body)->at("code") == "CONTEXT_NOT_FOUND");
        Reply run = agent.call("POST", session.target(), shell_request("true"));
        CHECK(run.status == 404);
        CHECK(json::parse(run.body)->at("code") == "CONTEXT_NOT_FOUND");
    }
}

TEST_CASE("The environment file reaches sessions whenever it says something new") {
    Scratch scratch;
    AgentOptions options;
    options.environment = {{"PATH", "/usr/bin:/bin"},
                           {"A", "agent"},
                           {"npm.dotted", "kept"},
                           {"EXECD_ENVS", scratch.at("envs")},
                           {"EXECD_ACCESS_TOKEN", "x"}};
    AgentProcess agent(std::move(options));
    TestSession session(agent);
    scratch.file("envs", "F=\"two\nlines\"\nEXECD_ACCESS_TOKEN=y\n");
    CHECK(session.output("echo \"$A $F ${EXECD_ACCESS_TOKEN-none}\"; F=mine") ==
          "agent two\nlines none\n");
    CHECK(session.output("echo $F; unset A") == "mine\n");
    scratch.file("envs", "F='new'\nG='also'\n");
    CHECK(session.output("echo $F $G ${A-unset}; env | grep dotted") ==
          "new also unset\nnpm.dotted=kept\n");
}

TEST_CASE("A state that is too large is not kept, and the run says so") {
    AgentProcess agent;
    TestSession session(agent);
    session.run("X=small");
    auto events = session.run("X=big; printf -v y '%*s' 17000000 ''");
    CHECK(events.back().type == "execution_complete");
    CHECK(joined(events, "stderr").find("too large") != std::string::npos);
    CHECK(session.output("echo $X ${#y}") == "small 0\n");
}

TEST_CASE("Without bash a session keeps what sh can hand on") {
    WithoutBash system;
    TestSession session(system.agent());
    session.run(
        "cd /usr; export A='one\ntwo'\\''s'; b=$(printf 'x\\001y'); umask 077; set -f; set -u");
    CHECK(
        session.output("pwd; echo \"$A\"; printf %s \"$b\" | od -An -tx1 | tr -d ' \\n'; umask") ==
        "/usr\none\ntwo's\n7801790077\n");
    CHECK(session.output("echo *; sh -c 'echo $A ${b-own}'; set +u") == "*\none two's own\n");
    auto events = session.run("b=left; cd share; exit 5");
    CHECK(events.back().value == "5");
    CHECK(session.output("pwd; echo $b; cd -") == "/usr/share\nleft\n/usr\n");
    auto wrong = session.run("b=set\nif; then");
    CHECK(wrong.back().value == "2");
    CHECK(session.output("echo $b; pwd", R"("cwd":"/bin/..")") == "set\n/usr\n");
    CHECK(session.output("pwd; unset HOME; set -x") == "/usr\n");
    auto traced = session.run("echo ${HOME-none}");
    CHECK(joined(traced, "stdout") == "none\n");
    CHECK(joined(traced, "stderr") == "+ echo none\n");
    CHECK(session.output("(ls /proc/self/fd | tr '\\n' ' '); [ $PPID = " +
                         std::to_string(system.agent().pid()) + " ] && echo child") ==
          "0 1 2 3 child\n");
    auto slow = session.run("sleep 60", "\"timeout\":100");
    CHECK(slow.back().value == "124");
}

TEST_CASE("Wrong requests to sessions are refused in JSON") {
    AgentProcess agent;
    TestSession session(agent);
    for (const char* body : {"", "{", "[]", "{}", R"({"command":""})", R"({"command":1})",
                             R"({"command":"a","timeout":-1})", R"({"command":"a\u0000b"})"}) {
        INFO(body);
        Reply reply = agent.call("POST", session.target(), body);
        CHECK(reply.status == 400);
        CHECK(json::parse(reply.body)->at("code") == "INVALID_REQUEST_BODY");
    }
    Scratch scratch;
    scratch.file("plain", "");
    CHECK(agent.call("POST", "/session", "[]").status == 400);
    CHECK(agent.call("POST", "/session", R"({"cwd":"$NO_SUCH_NAME/x"})").status == 400);
    Reply file = agent.call("POST", "/session", R"({"cwd":")" + scratch.at("plain") + "\"}");
    CHECK(file.status == 500);
    CHECK(json::parse(file.body)->at("code") == "RUNTIME_ERROR");
}

TEST_CASE("The number of sessions is limited, and a deleted one makes room") {
    AgentProcess agent;
    std::string id;
    Reply reply;
    int made = 0;
    while ((reply = agent.call("POST", "/session")).status == 200 && made < 2000) {
        id = json::parse(reply.body)->at("session_id").get_string();
        ++made;
    }
    CHECK(made == 1000);
    CHECK(reply.status == 500);
    CHECK(reply.body.find("sessions already") != std::string::npos);
    CHECK(agent.call("DELETE", "/session/" + id).status == 200);
    CHECK(agent.call("POST", "/session").status == 200);
}

TEST_CASE("An agent that is ended ends the runs of its sessions") {
    AgentProcess agent;
    TestSession session(agent);
    RawConnection running(agent.port());
    session.begin(running, "trap '' TERM; echo up; while true; do sleep 0.1; done");
    running.receive_until("up");
    agent.signal(SIGTERM);
    CHECK(running.receive_until("\r\n0\r\n\r\n").find("signal: killed") != std::string::npos);
    CHECK(agent.wait() == 0);
}
