#include "agent/api/agent.hpp"
#include "agent/ground/clone3_filter.hpp"
#include "agent/ground/log_file.hpp"
#include "agent/role/role.hpp"
#include "agent/session/shell_state.hpp"
#include "agent/trust/egress_certificate.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace fs = std::filesystem;

namespace {

using Pairs = Environment::Pairs;
using Words = std::vector<std::string>;

/// A forked process that plays the bootstrap role, with its output in a file.
class Bootstrap {
  public:
    Bootstrap(const Scratch& scratch, Words arguments, const Pairs& more = {}) : scratch_(scratch) {
        Pairs pairs{{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                    {"HOME", "/root"},
                    {"EXECD", "execd --port 0"},
                    {"EXECD_ENVS", scratch.at("envs/.env")}};
        pairs.insert(pairs.end(), more.begin(), more.end());
        arguments.insert(arguments.begin(), "bootstrap");
        pid_ = ::fork();
        REQUIRE(pid_ >= 0);
        if (pid_ == 0) ::_exit(play(std::move(arguments), pairs));
    }
    Bootstrap(const Bootstrap&) = delete;
    Bootstrap& operator=(const Bootstrap&) = delete;
    ~Bootstrap() {
        if (pid_ < 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] std::string output() const { return scratch_.read("output"); }
    /// Exit code, or -1 after ten seconds.
    int wait() {
        int status = 0;
        if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

  private:
    int play(Words arguments, const Pairs& pairs) const {
        ::clearenv();
        for (const auto& [name, value] : pairs)
            ::setenv(name.c_str(), value.c_str(), 1);
        int file = ::open(scratch_.at("output").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        if (::chdir(scratch_.path().c_str()) != 0) return 99;
        std::vector<char*> argv;
        for (std::string& word : arguments)
            argv.push_back(word.data());
        argv.push_back(nullptr);
        return bootstrap_main(static_cast<int>(arguments.size()), argv.data());
    }

    const Scratch& scratch_;
    pid_t pid_ = -1;
};

Words command(const Words& arguments, const Pairs& pairs) {
    auto chosen = bootstrap_command(arguments, Environment(pairs));
    return chosen ? *chosen : Words{"error", chosen.error().message()};
}

bool said(const std::string& text, const std::string& what) {
    INFO(text);
    return text.find(what) != std::string::npos;
}

void make_program(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0755);
}

}  // namespace

TEST_CASE("The bootstrap command is the text for a shell, or the arguments as they are") {
    Scratch scratch;
    Pairs path{{"PATH", scratch.path()}};
    CHECK(command({"-c", "echo"}, path).at(1).find("neither bash nor sh") != std::string::npos);
    CHECK(command({"prog", "-c"}, path) == Words{"prog", "-c"});
    make_program(scratch.at("sh"), "");
    CHECK(command({}, path) == Words{scratch.at("sh")});
    make_program(scratch.at("bash"), "");
    CHECK(command({"-c", "echo", "a  b"}, path) == Words{scratch.at("bash"), "-c", "echo a  b"});
    Pairs chosen{{"PATH", scratch.path()}, {"BOOTSTRAP_SHELL", "sh"}, {"BOOTSTRAP_CMD", "x y"}};
    CHECK(command({"prog"}, chosen) == Words{scratch.at("sh"), "-c", "x y"});
    chosen[1].second = "/no/such/shell";
    CHECK(command({}, chosen).at(1).find("/no/such/shell") != std::string::npos);
    CHECK(bootstrap_flags(Environment({{"EXECD", " /x/execd  --port 1 -init "}})) ==
          Words{"--port", "1", "-init"});
    CHECK(bootstrap_flags(Environment()).empty());
}

TEST_CASE("The bootstrap role runs the command as init and ends with its code") {
    Scratch scratch;
    Bootstrap text(scratch, {"-c", "echo got $EXECD_ENVS ${EXECD_ACCESS_TOKEN-no token}; exit 7"},
                   {{"EXECD_ACCESS_TOKEN", "secret"}});
    CHECK(text.wait() == 7);
    CHECK(said(text.output(), "got " + scratch.at("envs/.env") + " no token\n"));
    CHECK(fs::exists(scratch.at("envs/.env")));
    Bootstrap plain(scratch, {"/bin/sh", "-c", "exit 8"});
    CHECK(plain.wait() == 8);
    Bootstrap variable(scratch, {"false"}, {{"BOOTSTRAP_CMD", "kill -KILL $$"}});
    CHECK(variable.wait() == 137);
    Bootstrap missing(scratch, {"/no/such/program"});
    CHECK(missing.wait() == 127);
}

TEST_CASE("The bootstrap role needs no shell unless a text does") {
    Scratch scratch;
    fs::create_directory(scratch.at("bin"));
    Bootstrap direct(scratch, {"/bin/true"}, {{"PATH", scratch.at("bin")}});
    CHECK(direct.wait() == 0);
    Bootstrap text(scratch, {"-c", "true"}, {{"PATH", scratch.at("bin")}});
    CHECK(text.wait() == 1);
    CHECK(said(text.output(), "neither bash nor sh"));
}

TEST_CASE("The bootstrap role passes signals on") {
    Scratch scratch;
    std::string traps;
    for (const char* name : {"HUP", "USR1", "USR2", "WINCH", "INT", "QUIT"}) {
        traps += "trap 'echo " + std::string(name) + " >> log' " + name + "\n";
    }
    // A signal that comes while a shell forks a child may be lost in the shell: this one only
    // waits.
    Bootstrap role(scratch, {"bash", "-c",
                             traps + "sleep 600 & sleeper=$!\ntrap 'kill $sleeper; exit 3' TERM\n"
                                     "touch up\nwhile true; do wait $sleeper; done"});
    REQUIRE(eventually([&] { return fs::exists(scratch.at("up")); }));
    std::string expected;
    for (auto [number, name] :
         {std::pair(SIGHUP, "HUP"), std::pair(SIGUSR1, "USR1"), std::pair(SIGUSR2, "USR2"),
          std::pair(SIGWINCH, "WINCH"), std::pair(SIGINT, "INT"), std::pair(SIGQUIT, "QUIT")}) {
        ::kill(role.pid(), number);
        expected += std::string(name) + "\n";
        CHECK(eventually([&] { return scratch.read("log") == expected; }));
    }
    ::kill(role.pid(), SIGTERM);
    CHECK(role.wait() == 3);
}

TEST_CASE("A pre-script is sourced by a shell that becomes the program again") {
    Scratch scratch;
    scratch.file("pre", "export FROM_SCRIPT='a b'\ncd /usr\n");
    Environment environment(
        {{"PATH", "/usr/bin:/bin"}, {"EXECD_BOOTSTRAP_PRE_SCRIPT", scratch.at("pre")}});
    auto words = pre_script_command(environment, "/bin/echo", {"x", "y z"});
    REQUIRE(words);
    // As execve would get it, with a program that shows what it was given.
    auto shown = pre_script_command(environment, "/usr/bin/printenv", {"FROM_SCRIPT", "PWD"});
    REQUIRE(shown);
    AgentProcess agent;
    auto run = [&](const Words& argv) {
        std::string line;
        for (const std::string& word : argv)
            line += quote_for_shell(word) + " ";
        return joined(agent.command(shell_request(line)), "stdout");
    };
    CHECK(run(*words) == "bootstrap x y z\n");
    CHECK(run(*shown) == "a b\n/usr\n");
    environment.set("EXECD_BOOTSTRAP_PRE_SCRIPT", "not-there");
    auto missing = pre_script_command(environment, "/bin/echo", {});
    REQUIRE_FALSE(missing);
    CHECK(said(missing.error().message(), "./not-there"));
    CHECK(pre_script_command(Environment(), "/bin/echo", {})->empty());
    // Without a script that can be read the command runs all the same.
    Bootstrap role(scratch, {"true"}, {{"EXECD_BOOTSTRAP_PRE_SCRIPT", "not-there"}});
    CHECK(role.wait() == 0);
    CHECK(said(role.output(), "pre-script is left out"));
}

TEST_CASE("The egress certificate is merged, installed and named to programs") {
    Scratch scratch;
    fs::create_directories(scratch.at("opt/opensandbox"));
    fs::create_directories(scratch.at("etc/ssl/certs"));
    fs::create_directories(scratch.at("usr/local/share/ca-certificates"));
    fs::create_directory(scratch.at("bin"));
    scratch.file("etc/ssl/certs/ca-certificates.crt", "public");
    make_program(scratch.at("bin/update-ca-certificates"), "#!/bin/sh\n: > " + scratch.at("ran"));
    Environment environment(
        {{"PATH", scratch.at("bin")}, {"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "True"}});
    // It comes while it is waited for.
    pid_t late = ::fork();
    if (late == 0) {
        ::usleep(300'000);
        scratch.file("opt/opensandbox/mitmproxy-ca-cert.pem", "own\n");
        ::_exit(0);
    }
    prepare_bootstrap(environment, scratch.path(), std::chrono::seconds(10));
    ::waitpid(late, nullptr, 0);
    CHECK(scratch.read("opt/opensandbox/merged-ca-certificates.pem") == "public\nown\n");
    CHECK(scratch.read("usr/local/share/ca-certificates/opensandbox-mitmproxy-ca.crt") == "own\n");
    CHECK(fs::exists(scratch.at("ran")));
    CHECK(environment.get("NODE_EXTRA_CA_CERTS") ==
          scratch.at("opt/opensandbox/mitmproxy-ca-cert.pem"));
    for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}) {
        CHECK(environment.get(name) == scratch.at("opt/opensandbox/merged-ca-certificates.pem"));
    }
    CHECK(environment.get("EXECD_ENVS") == scratch.at("opt/opensandbox/.env"));
    CHECK(fs::exists(scratch.at("opt/opensandbox/.env")));
    // Once more, as after bootstrap.sh: there is nothing left to do.
    fs::remove(scratch.at("ran"));
    prepare_bootstrap(environment, scratch.path(), std::chrono::seconds(10));
    CHECK_FALSE(fs::exists(scratch.at("ran")));
}

TEST_CASE("Without other certificates, or without the egress one, bootstrap goes on") {
    Scratch scratch;
    Pairs wanted{{"PATH", "/none"}, {"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "1"}};
    Environment none(wanted);
    prepare_bootstrap(none, scratch.path(), std::chrono::milliseconds(10));
    CHECK_FALSE(none.get("SSL_CERT_FILE"));
    scratch.file("opt/opensandbox/mitmproxy-ca-cert.pem", "own\n");
    Environment alone(wanted);
    prepare_bootstrap(alone, scratch.path(), std::chrono::seconds(10));
    CHECK(alone.get("SSL_CERT_FILE") == scratch.at("opt/opensandbox/mitmproxy-ca-cert.pem"));
    CHECK_FALSE(EgressCertificate::wanted(Environment()));
}

TEST_CASE("clone3 can be made to fail as on a kernel without it") {
    CHECK(parse_clone3_compat("YES") == Clone3Compat::on);
    CHECK(parse_clone3_compat("reexec") == Clone3Compat::reexec);
    CHECK(parse_clone3_compat("") == Clone3Compat::off);
    CHECK_FALSE(parse_clone3_compat("maybe"));
    pid_t pid = ::fork();
    if (pid == 0) {
        if (!deny_clone3()) ::_exit(1);
        errno = 0;
        long done = ::syscall(435, nullptr, 0);
        if (done != -1 || errno != ENOSYS) ::_exit(2);
        // Processes start all the same.
        ::_exit(std::system("true") == 0 ? 0 : 3);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    CHECK(WEXITSTATUS(status) == 0);
    Scratch scratch;
    Bootstrap wrong(scratch, {"true"}, {{"EXECD_CLONE3_COMPAT", "maybe"}});
    CHECK(wrong.wait() == 1);
    CHECK(said(wrong.output(), "EXECD_CLONE3_COMPAT"));
    Bootstrap on(scratch, {"-c", "grep Seccomp: /proc/self/status"},
                 {{"EXECD_CLONE3_COMPAT", "1"}});
    CHECK(on.wait() == 0);
    CHECK(said(on.output(), "Seccomp:\t2\n"));
}

TEST_CASE("A log file that has grown makes room for a new one") {
    Scratch scratch;
    auto log = LogFile::open(scratch.at("log"));
    REQUIRE(log);
    auto write = [&](const std::string& text) {
        REQUIRE(::write((*log)->descriptor(), text.data(), text.size()) ==
                static_cast<ssize_t>(text.size()));
    };
    write("first");
    CHECK((*log)->rotate(5));
    CHECK_FALSE(fs::exists(scratch.at("log.1")));
    int descriptor = (*log)->descriptor();
    for (const char* text : {"!", "second", "third.", "fourth"}) {
        write(text);
        CHECK((*log)->rotate(5));
    }
    write("new");
    CHECK((*log)->descriptor() == descriptor);
    CHECK(scratch.read("log") == "new");
    CHECK(scratch.read("log.1") == "fourth");
    CHECK(scratch.read("log.3") == "second");
    CHECK_FALSE(fs::exists(scratch.at("log.4")));
    CHECK_FALSE(LogFile::open("/no/such/directory/log"));
    Bootstrap role(scratch, {"true"}, {{"EXECD_LOG_FILE", scratch.at("execd.log")}});
    CHECK(role.wait() == 0);
    CHECK(said(scratch.read("execd.log"), "listening"));
}

TEST_CASE("A storm of orphans is reaped while the agent answers") {
    AgentOptions options;
    options.init = true;
    options.entrypoint = {"sleep", "60"};
    AgentProcess agent(std::move(options));
    const long before = agent.anonymous_memory();
    // Every subshell leaves ten children behind that end at once.
    auto started =
        agent.command(shell_request("for i in $(seq 200); do (for j in 1 2 3 4 5 6 7 8 9 10; do "
                                    "(exit 0) & done); done; echo done"));
    CHECK(joined(started, "stdout") == "done\n");
    CHECK(agent.call("GET", "/ping").status == 200);
    CHECK(eventually([&] { return agent.zombies() == 0; }));
    CHECK(joined(agent.command(shell_request("echo alive")), "stdout") == "alive\n");
    CHECK(agent.anonymous_memory() - before < kAllocatorFactor * 8000);
}
