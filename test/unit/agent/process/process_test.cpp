#include "agent/api/routes.hpp"
#include "agent/command/request.hpp"
#include "agent/process/accounts.hpp"
#include "agent/process/environment_file.hpp"
#include "agent/process/reaper.hpp"
#include "agent/process/spawn.hpp"
#include "agent/role/flags.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::agent;

namespace {

using Pairs = Environment::Pairs;

Pairs parse(std::string_view text) {
    return parse_environment_file(text, [](std::string_view name) -> std::optional<std::string> {
        if (name == "HOME") return "/home/me";
        if (name == "QUOTE") return "\"";
        return std::nullopt;
    });
}

Result<CommandRequest> request_of(std::string_view text) {
    return parse_command_request(json::parse(text).value());
}

std::string refusal(std::string_view text) {
    auto request = request_of(text);
    return request ? "" : request.error().message();
}

int wait_code(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

SpawnRequest shell(const std::string& command) {
    SpawnRequest request;
    request.programs = shell_programs(command, std::nullopt);
    return request;
}

}  // namespace

TEST_CASE("Plain lines of an environment file are trimmed and expanded") {
    CHECK(parse("A=1\n  B = two \n# no\n\nnothing\n=x\nC=$HOME/bin:${HOME}$NOPE.\n") ==
          Pairs{{"A", "1"}, {"B ", " two"}, {"C", "/home/me/bin:/home/me."}});
    CHECK(parse("A=1\nA=2") == Pairs{{"A", "1"}, {"A", "2"}});
    CHECK(parse("A=") == Pairs{{"A", ""}});
    CHECK(parse("A=$\nB=$5\nC=${\nD=${}") ==
          Pairs{{"A", "$"}, {"B", "$5"}, {"C", "${"}, {"D", "${}"}});
}

TEST_CASE("Single quotes take everything literally, over several lines") {
    CHECK(parse("A='$HOME \\n'\nB=2") == Pairs{{"A", "$HOME \\n"}, {"B", "2"}});
    CHECK(parse("A='one\n two \n'  \nB=2") == Pairs{{"A", "one\n two \n"}, {"B", "2"}});
    CHECK(parse("A=''") == Pairs{{"A", ""}});
}

TEST_CASE("Double quotes keep blanks, know escapes and expand") {
    CHECK(parse(R"(A=" x\n\r\t\\\" y ")") == Pairs{{"A", " x\n\r\t\\\" y "}});
    CHECK(parse("A=\"$HOME\nnext\"\nB=2") == Pairs{{"A", "/home/me\nnext"}, {"B", "2"}});
    CHECK(parse(R"(A="\\$HOME \q")") == Pairs{{"A", "\\/home/me \\q"}});
    CHECK(parse("A=\"$QUOTE\"\nB=1") == Pairs{{"A", "\""}, {"B", "1"}});
    CHECK(parse("A=\"it's\"") == Pairs{{"A", "it's"}});
}

TEST_CASE("A quote that is not closed on a line end is a plain value") {
    CHECK(parse("A='open\nB=2") == Pairs{{"A", "'open"}, {"B", "2"}});
    CHECK(parse("A='x' y\nB=2") == Pairs{{"A", "'x' y"}, {"B", "2"}});
    CHECK(parse("A=\"open") == Pairs{{"A", "\"open"}});
    CHECK(parse("A=\"x\\\"") == Pairs{{"A", "\"x\\\""}});
}

TEST_CASE("Names and values with NUL never reach a process") {
    CHECK(parse(std::string_view("A=x\0y\nB=1", 9)) == Pairs{{"B", "1"}});
    CHECK(parse(std::string_view("A='x\n\0'\nB=1", 11)) == Pairs{{"B", "1"}});
}

TEST_CASE("A working directory expands variables of the command and refuses unset ones") {
    Environment environment(Pairs{{"HOME", "/h"}, {"X", "dir"}});
    CHECK(*expand_directory("~/$X", environment) == "/h/dir");
    CHECK(*expand_directory("/a/${X}b", environment) == "/a/dirb");
    CHECK(*expand_directory("/a~b", environment) == "/a~b");
    CHECK_FALSE(expand_directory("/$MISSING", environment));
}

TEST_CASE("A command request takes exactly one of command and argv") {
    CHECK(request_of(R"({"command":"ls"})")->command == "ls");
    CHECK(request_of(R"({"argv":["ls","-l"]})")->argv.size() == 2);
    CHECK(request_of(R"({"argv":["ls","-l"]})")->content() == "ls -l");
    CHECK(request_of(R"({"Command":"ls","argv":null})")->command == "ls");
    CHECK(refusal("{}") == "exactly one of command and argv is required");
    CHECK(refusal(R"({"command":""})") == "exactly one of command and argv is required");
    CHECK(refusal(R"({"command":"a","argv":["b"]})") ==
          "exactly one of command and argv is required");
    CHECK_FALSE(refusal(R"({"argv":[]})").empty());
    CHECK_FALSE(refusal(R"({"argv":[""]})").empty());
    CHECK_FALSE(refusal(R"({"argv":["a\u0000b"]})").empty());
    CHECK_FALSE(refusal(R"({"command":"a\u0000b"})").empty());
    CHECK_FALSE(refusal(R"([1])").empty());
}

TEST_CASE("A command request names the field whose rule it breaks") {
    CHECK(refusal(R"({"command":1})").find("command") == 0);
    CHECK(refusal(R"({"command":"a","timeout":-1})").find("timeout") == 0);
    CHECK(refusal(R"({"command":"a","timeout":1.5})").find("timeout") == 0);
    CHECK(refusal(R"({"command":"a","gid":1})").find("gid") == 0);
    CHECK(refusal(R"({"command":"a","uid":-1})").find("uid") == 0);
    CHECK(refusal(R"({"command":"a","uid":4294967295})").find("uid") == 0);
    CHECK(refusal(R"({"command":"a","envs":{"A=B":"x"}})").find("envs") == 0);
    CHECK(refusal(R"({"command":"a","envs":{"A":1}})").find("envs") == 0);
    CHECK(refusal(R"({"command":"a","background":"yes"})").find("background") == 0);
    auto full = request_of(R"({"command":"a","timeout":1500,"uid":1,"gid":2,"cwd":"/x",
                              "background":true,"envs":{"A":"1"},"more":[]})");
    REQUIRE(full);
    CHECK(full->timeout.count() == 1500);
    CHECK(*full->uid == 1);
    CHECK(*full->gid == 2);
    CHECK(full->background);
    CHECK(full->envs == Pairs{{"A", "1"}});
    CHECK(request_of(R"({"command":"a","timeout":9223372036854775807})")->timeout.count() > 0);
}

TEST_CASE("Accounts read names, groups and members, and pass over broken lines") {
    auto accounts = Accounts::parse(
        "root:x:0:0:root:/root:/bin/sh\nbroken\nme:x:1000:100:::\n"
        "bad:x:no:1:::\n",
        "root:x:0:\nusers:x:100:\naudio:x:29:you,me\nx:y\nother:x:30:men");
    CHECK(*accounts.user_id("me") == 1000);
    CHECK(*accounts.user_id("1234") == 1234);
    CHECK_FALSE(accounts.user_id("bad"));
    CHECK_FALSE(accounts.user_id(""));
    CHECK_FALSE(accounts.user_id("-1"));
    CHECK(*accounts.group_id("audio") == 29);
    CHECK(accounts.user_name(0) == "root");
    CHECK(accounts.user_name(77) == "77");
    CHECK(accounts.group_name(100) == "users");
    CHECK(*accounts.primary_group(1000) == 100);
    CHECK_FALSE(accounts.primary_group(77));
    CHECK(accounts.groups_of(1000, 100) == std::vector<gid_t>{100, 29});
    CHECK(accounts.groups_of(77, 5) == std::vector<gid_t>{5});
}

TEST_CASE("Exits are described in the words of the contract") {
    ExitStatus status;
    CHECK(status.success());
    status.code = 2;
    CHECK(status.describe() == "exit status 2");
    CHECK(status.client_code() == 2);
    status.code = 0;
    status.signal = SIGKILL;
    CHECK(status.describe() == "signal: killed");
    CHECK(status.client_code() == -1);
    CHECK(status.shell_code() == 137);
    status.signal = SIGSEGV;
    status.core = true;
    CHECK(status.describe() == "signal: segmentation fault (core dumped)");
}

TEST_CASE("Only absolute entries of PATH are searched") {
    CHECK(search_path("x", "/a:b::/c/:") == std::vector<std::string>{"/a/x", "/c/x"});
    CHECK(program_of({"./x"}, "/a").paths == std::vector<std::string>{"./x"});
    CHECK(search_path("x", std::nullopt).size() == 6);
}

TEST_CASE("A started process is a group leader with default signals and three descriptors") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);  // deliberately without close-on-exec
    std::signal(SIGPIPE, SIG_IGN);
    auto request = shell(
        "test \"$(ls /proc/self/fd | wc -l)\" = 4 || exit 1\n"
        "test \"$(ps -o pgid= -p $$ | tr -d ' ')\" = $$ || exit 2\n"
        "grep -q 'SigIgn:.0*$' /proc/self/status || exit 3\n"
        "grep -q 'SigBlk:.0*$' /proc/self/status || exit 4\n"
        "read x && exit 5; exit 9");
    auto pid = spawn(request);
    REQUIRE(pid);
    CHECK(wait_code(*pid) == 9);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("A failure to start names the step and leaves no child") {
    auto request = shell("true");
    request.directory = "/no/such/directory";
    auto pid = spawn(request);
    REQUIRE_FALSE(pid);
    CHECK(pid.error().message().find("/no/such/directory") != std::string::npos);
    CHECK(pid.error().code() == ErrorCode::not_found);
    SpawnRequest missing;
    missing.programs.push_back(program_of({"no-such-program"}, "/bin:/usr/bin"));
    auto none = spawn(missing);
    REQUIRE_FALSE(none);
    CHECK(none.error().message().find("no-such-program") != std::string::npos);
    SpawnRequest denied;
    denied.programs.push_back(program_of({"/etc/passwd"}, std::nullopt));
    auto refused = spawn(denied);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::permission_denied);
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("Without bash the shell is sh, and its absence is said") {
    char directory[] = "/tmp/agent-path-XXXXXX";
    REQUIRE(::mkdtemp(directory) != nullptr);
    std::string link = std::string(directory) + "/sh";
    SpawnRequest none;
    none.programs = shell_programs("exit 4", directory);
    auto missing = spawn(none);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().message().find("bash or sh") != std::string::npos);
    REQUIRE(::symlink("/bin/sh", link.c_str()) == 0);
    SpawnRequest request;
    request.programs = shell_programs("exit 4", directory);
    auto pid = spawn(request);
    if (pid) CHECK(wait_code(*pid) == 4);
    CHECK(pid.has_value());
    ::unlink(link.c_str());
    ::rmdir(directory);
}

TEST_CASE("Flags are read as Go reads them, over the environment") {
    Pairs env{{"EXECD_ACCESS_TOKEN", "from-env"}, {"PATH", "/bin"}, {"EXECD_INIT", "yes"}};
    auto both = parse_invocation(
        {"-port", "1", "--access-token=x", "--log-level=7", "--", "run", "-v"}, env);
    REQUIRE(both);
    CHECK(both->options.port == 1);
    CHECK(both->options.access_token == "x");
    CHECK(both->log_level == 7);
    CHECK(both->options.init);
    CHECK(both->options.entrypoint == std::vector<std::string>{"run", "-v"});
    for (const auto& [name, value] : both->options.environment)
        CHECK(name != "EXECD_ACCESS_TOKEN");
    CHECK(parse_invocation({}, env)->options.access_token == "from-env");
    CHECK(parse_invocation({"-init=false"}, env)->options.init == false);
    CHECK(parse_invocation({}, {})->options.port == 44772);
    CHECK(parse_invocation({"--graceful-shutdown-timeout", "250ms", "-jupyter-token=t"}, {}));
    CHECK(parse_invocation({"-help"}, {})->help);
}

TEST_CASE("Wrong flags are refused with what is wrong") {
    CHECK(parse_invocation({"-nope"}, {}).error().message().find("-nope") != std::string::npos);
    CHECK_FALSE(parse_invocation({"-port"}, {}));
    CHECK_FALSE(parse_invocation({"-port", "x"}, {}));
    CHECK_FALSE(parse_invocation({"-port", "70000"}, {}));
    CHECK_FALSE(parse_invocation({"-init=maybe"}, {}));
    CHECK_FALSE(parse_invocation({"--graceful-shutdown-timeout", "soon"}, {}));
    CHECK_FALSE(parse_invocation({}, {{"EXECD_API_GRACE_SHUTDOWN", "soon"}}));
    CHECK_FALSE(parse_invocation({}, {{"JUPYTER_HOST", "localhost"}}));
    CHECK_FALSE(parse_invocation({"command"}, {}));
}

TEST_CASE("Proxy targets keep the raw rest of the target") {
    auto target = [](std::string_view text) {
        auto out = proxy_target(text);
        return out ? std::to_string(out->port) + " " + out->target : "none";
    };
    CHECK(target("/proxy/80/a%20b?x=%2F") == "80 /a%20b?x=%2F");
    CHECK(target("/proxy/8080") == "8080 /");
    CHECK(target("/proxy/8080/") == "8080 /");
    CHECK(target("/proxy/8080?q") == "8080 /?q");
    CHECK(target("/proxy/0/a") == "none");
    CHECK(target("/proxy/65536/a") == "none");
    CHECK(target("/proxy/x/a") == "none");
    CHECK(target("/proxy//a") == "none");
    CHECK(target("/proxy") == "none");
}

TEST_CASE("The agent's own prefix is taken off a target, however often it stands there") {
    auto taken = [](std::string target) {
        take_own_prefix(target, 44772);
        return target;
    };
    CHECK(taken("/proxy/44772/ping?x=%2F") == "/ping?x=%2F");
    CHECK(taken("/proxy/44772") == "/");
    CHECK(taken("/proxy/44772?x=1") == "/?x=1");
    CHECK(taken("/proxy/044772/a") == "/a");
    CHECK(taken("/proxy/44772/proxy/44772/proxy/80/a") == "/proxy/80/a");
    CHECK(taken("/proxy/4477/a") == "/proxy/4477/a");
    CHECK(taken("/proxy/447722/a") == "/proxy/447722/a");
    CHECK(taken("/a/proxy/44772/b") == "/a/proxy/44772/b");
}
