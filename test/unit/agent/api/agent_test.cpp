#include "json/document.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

AgentOptions init_with(std::vector<std::string> entrypoint) {
    AgentOptions options;
    options.init = true;
    options.entrypoint = std::move(entrypoint);
    return options;
}

}  // namespace

TEST_CASE("Every path wants the token when there is one") {
    AgentOptions options;
    options.access_token = "correct";
    AgentProcess agent(std::move(options));
    for (const char* target : {"/ping", "/no/such", "/proxy/1/", "/command"}) {
        INFO(target);
        Reply reply = agent.call("GET", target);
        CHECK(reply.status == 401);
        CHECK(reply.body ==
              R"({"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"})");
    }
    CHECK(agent.call("GET", "/ping", "", {{"X-EXECD-ACCESS-TOKEN", "wrong"}}).status == 401);
    Reply ping = agent.call("GET", "/ping", "", {{"x-execd-access-token", "correct"}});
    CHECK(ping.status == 200);
    CHECK(ping.body.empty());
    CHECK(agent.call("GET", "/.access/correct/ping").status == 200);
    CHECK(agent.call("GET", "/.access/correct/no/such").status == 404);
    CHECK(agent.call("GET", "/.access/wrong/ping").status == 401);
    CHECK(agent.call("GET", "/.access/correctx/ping").status == 401);
}

TEST_CASE("The agent answers below the path of its own port, too, with the token only") {
    AgentOptions options;
    options.access_token = "correct";
    AgentProcess agent(std::move(options));
    const http::Fields token{{"X-EXECD-ACCESS-TOKEN", "correct"}};
    CHECK(agent.call("GET", "/proxy/44772/ping").status == 401);
    CHECK(agent.call("GET", "/proxy/44772/ping", "", token).status == 200);
    CHECK(agent.call("GET", "/.access/correct/proxy/44772/ping").status == 200);
    CHECK(agent.call("GET", "/.access/wrong/proxy/44772/ping").status == 401);
    CHECK(agent.call("GET", "/proxy/44772/.access/correct/ping").status == 401);
    Reply ran = agent.call("POST", "/proxy/44772/command", R"({"command":"echo here"})", token);
    CHECK(joined(parse_events(ran.body), "stdout") == "here\n");
    // Nor does it answer itself without end, or without the token.
    CHECK(agent.call("GET", "/proxy/44772/proxy/44772/ping", "", token).status == 200);
    CHECK(agent.call("GET", "/proxy/44772/no/such", "", token).status == 404);
}

TEST_CASE("Unknown paths and methods are refused in JSON") {
    AgentProcess agent;
    Reply missing = agent.call("GET", "/no/such");
    CHECK(missing.status == 404);
    CHECK(json::parse(missing.body)->at("code") == "NOT_SUPPORTED");
    Reply method = agent.call("PUT", "/ping");
    CHECK(method.status == 405);
    CHECK(method.fields.get("Allow") == "GET");
    CHECK(json::parse(method.body)->at("code") == "NOT_SUPPORTED");
    CHECK(agent.call("GET", "/ping/").status == 200);
}

TEST_CASE("Metrics have all five members and sane values") {
    AgentProcess agent;
    Reply reply = agent.call("GET", "/metrics");
    REQUIRE(reply.status == 200);
    auto document = json::parse(reply.body);
    auto number = [&](const char* name) { return document->at(name).to_number<double>(); };
    CHECK(number("cpu_count") > 0);
    CHECK(number("cpu_used_pct") >= 0);
    CHECK(number("cpu_used_pct") <= 100);
    CHECK(number("mem_total_mib") > 0);
    CHECK(number("mem_used_mib") <= number("mem_total_mib"));
    CHECK(number("timestamp") > 1.6e12);
    RawConnection watch(agent.port());
    watch.send("GET /metrics/watch HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(watch.receive_until("timestamp").find("text/event-stream") != std::string::npos);
}

TEST_CASE("The proxy passes on raw targets and keeps the token") {
    AgentOptions options;
    options.access_token = "secret";
    AgentProcess agent(std::move(options));
    AgentProcess service;
    std::string base = "/proxy/" + std::to_string(service.port());
    http::Fields fields{{"X-EXECD-ACCESS-TOKEN", "secret"}};
    Reply reply = agent.call("GET", base + "/no%20such/x?y=%2F", "", fields);
    CHECK(reply.status == 404);
    CHECK(reply.body.find("/no%20such/x") != std::string::npos);
    // A service without a token of its own says so when it is given one.
    CHECK(agent.call("GET", base + "/ping", "", fields).status == 200);
    auto command = agent.call("POST", base + "/command", shell_request("echo through"), fields);
    CHECK(joined(parse_events(command.body), "stdout") == "through\n");
    Reply refused = agent.call("GET", "/proxy/1/", "", fields);
    CHECK(refused.status == 502);
    CHECK(json::parse(refused.body));
    CHECK(agent.call("GET", "/proxy/0/", "", fields).status == 400);
    CHECK(agent.call("GET", "/proxy", "", fields).status == 400);
}

TEST_CASE("The service behind the proxy does not see the token") {
    AgentOptions options;
    options.access_token = "secret-token";
    AgentProcess agent(std::move(options));
    Scratch scratch;
    // One exchange of netcat-like plainness, in the test's own process.
    boost::asio::io_context loop;
    boost::asio::ip::tcp::acceptor acceptor(loop, {boost::asio::ip::address_v4::loopback(), 0});
    RawConnection client(agent.port());
    client.send("GET /proxy/" + std::to_string(acceptor.local_endpoint().port()) +
                "/x HTTP/1.1\r\nHost: a\r\nX-EXECD-ACCESS-TOKEN: secret-token\r\n\r\n");
    boost::asio::ip::tcp::socket socket = acceptor.accept();
    std::string seen;
    boost::asio::read_until(socket, boost::asio::dynamic_buffer(seen), "\r\n\r\n");
    CHECK(seen.starts_with("GET /x HTTP/1.1\r\n"));
    CHECK(seen.find("secret-token") == std::string::npos);
    CHECK(seen.find("X-Forwarded-For: 127.0.0.1") != std::string::npos);
    boost::asio::write(socket, boost::asio::buffer(std::string("HTTP/1.1 204 No Content\r\n\r\n")));
    CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 204"));
}

TEST_CASE("An init agent ends with its entrypoint's code") {
    Scratch scratch;
    AgentProcess agent(init_with(
        {"sh", "-c", "until test -e " + scratch.at("go") + "; do sleep 0.02; done; exit 42"}));
    CHECK(agent.ready().empty());
    CHECK(agent.call("GET", "/ping").status == 200);
    scratch.file("go", "");
    CHECK(agent.wait() == 42);
}

TEST_CASE("An init agent reports the signal that ended its entrypoint") {
    AgentProcess agent(init_with({"sh", "-c", "kill -KILL $$"}));
    CHECK(agent.wait() == 137);
}

TEST_CASE("An entrypoint that cannot start is named in the failure") {
    AgentProcess agent(init_with({"/no/such/entrypoint"}));
    CHECK(agent.ready().find("/no/such/entrypoint") != std::string::npos);
    CHECK(agent.ready().find("No such file") != std::string::npos);
    CHECK(agent.wait() == 127);
    AgentProcess denied(init_with({"/etc/passwd"}));
    CHECK(denied.ready().find("Permission denied") != std::string::npos);
    CHECK(denied.wait() == 126);
}

TEST_CASE("An init agent forwards signals to its entrypoint") {
    Scratch scratch;
    AgentProcess agent(init_with({"bash", "-c",
                                  "trap 'echo hup >> " + scratch.at("log") +
                                      "' HUP\n"
                                      "trap 'echo usr1 >> " +
                                      scratch.at("log") +
                                      "' USR1\n"
                                      "trap 'echo term >> " +
                                      scratch.at("log") +
                                      "; exit 3' TERM\n"
                                      "touch " +
                                      scratch.at("up") +
                                      "\n"
                                      "while true; do sleep 0.02; done"}));
    REQUIRE(eventually([&] { return std::filesystem::exists(scratch.at("up")); }));
    agent.signal(SIGHUP);
    CHECK(eventually([&] { return scratch.read("log") == "hup\n"; }));
    agent.signal(SIGUSR1);
    CHECK(eventually([&] { return scratch.read("log") == "hup\nusr1\n"; }));
    agent.signal(SIGTERM);
    CHECK(agent.wait() == 3);
    CHECK(scratch.read("log") == "hup\nusr1\nterm\n");
}

TEST_CASE("An init agent collects orphans") {
    AgentProcess agent(init_with({"sleep", "60"}));
    agent.command(shell_request("for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.05' &) ; done"));
    std::string children = "/proc/" + std::to_string(agent.pid()) + "/task/" +
                           std::to_string(agent.pid()) + "/children";
    CHECK(eventually([&] {
        std::ifstream in(children);
        int count = 0;
        for (int pid = 0; in >> pid;)
            ++count;
        return count == 1;  // the entrypoint
    }));
    CHECK(agent.zombies() == 0);
}

TEST_CASE("The entrypoint of an init agent has its own group and no way to the agent's input") {
    Scratch scratch;
    AgentProcess agent(
        init_with({"sh", "-c",
                   "ps -o pgid= -p $$ | tr -d ' ' > " + scratch.at("group") + "; echo $$ > " +
                       scratch.at("pid") + "; readlink /proc/self/fd/0 > " + scratch.at("input") +
                       "; head -c 2000000 /dev/zero; touch " + scratch.at("done") + "; sleep 60"}));
    // Two megabytes into a pipe that nobody reads would block for ever.
    REQUIRE(eventually([&] { return std::filesystem::exists(scratch.at("done")); }));
    CHECK(scratch.read("group") == scratch.read("pid"));
    CHECK(scratch.read("input") == "/dev/null\n");
}

TEST_CASE("SIGTERM ends streams with a terminal event, then the agent") {
    AgentProcess agent;
    std::string body = shell_request("echo up; sleep 60");
    RawConnection connection(agent.port());
    connection.send("POST /command HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
    connection.receive_until("up");
    agent.command(shell_request("sleep 61", "\"background\":true"));
    agent.signal(SIGTERM);
    std::string rest = connection.receive_until("\r\n0\r\n\r\n");
    CHECK(rest.find("signal: terminated") != std::string::npos);
    CHECK(rest.ends_with("0\r\n\r\n"));
    CHECK(agent.wait() == 0);
}

TEST_CASE("SIGTERM kills commands that ignore it") {
    AgentProcess agent;
    std::string body = shell_request("trap '' TERM; echo up; while true; do sleep 0.1; done");
    RawConnection connection(agent.port());
    connection.send("POST /command HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
    connection.receive_until("up");
    agent.signal(SIGTERM);
    CHECK(connection.receive_until("\r\n0\r\n\r\n").find("signal: killed") != std::string::npos);
    CHECK(agent.wait() == 0);
}

TEST_CASE("An agent that ends in the middle of requests ends cleanly") {
    AgentProcess agent;
    Scratch scratch;
    RawConnection upload(agent.port());
    upload.send(
        "POST /files/upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
        "Content-Disposition: form-data; name=\"metadata\"\r\n\r\n{\"path\":\"" +
        scratch.at("half") +
        "\"}\r\n--b\r\nContent-Disposition: form-data; "
        "name=\"file\"\r\n\r\nhalf a file");
    auto stubborn = agent.command(
        shell_request("trap '' TERM; while true; do sleep 0.1; done", "\"background\":true"));
    RawConnection interrupt(agent.port());
    interrupt.send("DELETE /command?id=" + stubborn.front().text + " HTTP/1.1\r\nHost: a\r\n\r\n");
    RawConnection search(agent.port());
    search.send("GET /files/search?path=/usr&pattern=none HTTP/1.1\r\nHost: a\r\n\r\n");
    agent.signal(SIGTERM);
    CHECK(agent.wait() == 0);
    CHECK(std::filesystem::is_empty(scratch.path()));
}

#if !__has_feature(thread_sanitizer)  // which has threads of its own
TEST_CASE("An agent has one thread until files are asked for") {
    AgentProcess agent;
    auto threads = [&] {
        std::size_t count = 0;
        std::string tasks = "/proc/" + std::to_string(agent.pid()) + "/task";
        for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator(tasks))
            ++count;
        return count;
    };
    agent.command(shell_request("true"));
    CHECK(threads() == 1);
    agent.call("GET", "/files/info?path=/");
    CHECK(threads() == 3);
    CHECK(eventually([&] { return threads() == 1; }));
}
#endif

TEST_CASE("A port that is taken is a failure with a reason") {
    AgentProcess first;
    AgentOptions options;
    options.host = "127.0.0.1";
    options.port = first.port();
    Status ready;
    pid_t pid = ::fork();
    if (pid == 0) ::_exit(run(std::move(options)));
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(WEXITSTATUS(status) == 1);
}
