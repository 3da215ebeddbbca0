#include "server/diagnostics/pages.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;
using Catch::Contains;

namespace {

Timestamp at(std::int64_t seconds) {
    return Timestamp(std::chrono::seconds(seconds));
}

runtime::Inspection example() {
    runtime::Inspection seen;
    seen.object_id = "0123456789abcdef0123";
    seen.name = "sandbox-1";
    seen.image = "busybox:1";
    seen.status = "running";
    seen.running = true;
    seen.created_at = at(0);
    seen.started_at = at(1);
    seen.limits.cpu_cores = 0.5;
    seen.limits.memory_bytes = 512U << 20;
    seen.limits.pids = 4096;
    seen.network_mode = "bridge";
    seen.addresses = {{"bridge", "10.0.0.2"}};
    seen.ports.emplace_back("44772/tcp", "127.0.0.1:40123");
    seen.labels = {{"team", "x"}, {"opensandbox.io/egress-auth-token", "hush"}};
    seen.environment = {{"PATH", "/bin"}, {"API_KEY", "hush"}};
    return seen;
}

}  // namespace

TEST_CASE("the inspection is a block of labels and sections, secrets blanked") {
    REQUIRE(diagnostics::inspect_text(example()) == R"(Container ID:   0123456789abcdef0123
Name:           sandbox-1
Image:          busybox:1
Status:         running
Running:        true
Paused:         false
OOMKilled:      false
Created At:     1970-01-01T00:00:00Z
Started At:     1970-01-01T00:00:01Z

Resources:
  CPU: 0.50 cores
  Memory: 512 MiB
  PIDs Limit: 4096

Network:
  Mode: bridge
  bridge: 10.0.0.2

Ports:
  44772/tcp -> 127.0.0.1:40123

Labels:
  opensandbox.io/egress-auth-token=***
  team=x

Environment:
  API_KEY=***
  PATH=/bin)");
}

TEST_CASE("the inspection shows every limit by its title") {
    runtime::Inspection seen;
    for (const model::LimitRow& row : model::kLimits)
        seen.limits.*row.member = 3U << 20;
    const std::string text = diagnostics::inspect_text(seen);
    for (const model::LimitRow& row : model::kLimits)
        CHECK_THAT(text, Contains("\n  " + std::string(row.title) + ": 3"));
    CHECK_THAT(text, Contains("Disk: 3 MiB"));
    CHECK_THAT(text, Contains("Disk Read Rate: 3145728 bytes/s"));
}

TEST_CASE("what is empty is not shown, and nothing of a backend begins a line of its own") {
    runtime::Inspection seen;
    seen.object_id = "x";
    seen.status = "exited";
    seen.exit_code = 3;
    seen.error = "bad\nLabels:";
    std::string text = diagnostics::inspect_text(seen);
    REQUIRE_THAT(text, Contains("Exit Code:      3\n") && Contains("Error:          bad Labels:"));
    REQUIRE_THAT(text, !Contains("Resources") && !Contains("Ports") && !Contains("\nLabels:"));
}

TEST_CASE("values of secret names and passwords in addresses are never shown") {
    for (const char* name : {"TOKEN", "my_secret", "DB_PASSWORD", "apiKey", "x-auth-token",
                             "PROXY_AUTH", "aws.credentials"}) {
        INFO(name);
        REQUIRE(diagnostics::shown_value(name, "hush") == "***");
    }
    REQUIRE(diagnostics::shown_value("LANG", "C") == "C");
    REQUIRE(diagnostics::shown_value("AUTHOR", "me") == "me");
    REQUIRE(diagnostics::shown_value("URL", "http://u:hush@h/p,https://v:hush@w") ==
            "http://u:***@h/p,https://v:***@w");
    REQUIRE(diagnostics::shown_value("URL", "http://u@h:80/a:b@c") == "http://u@h:80/a:b@c");
    REQUIRE(diagnostics::shown_value("URL", "http://u:p@ss@h") == "http://u:***@h");
    REQUIRE(diagnostics::shown_value("URL", "://") == "://");
}

TEST_CASE("events tell how it is, what ended it, and what this server did") {
    auto seen = example();
    seen.running = false;
    seen.status = "exited";
    seen.oom_killed = true;
    seen.exit_code = 137;
    seen.finished_at = at(2);
    seen.health = "unhealthy";
    seen.health_log = {"exit 1: no answer"};
    auto lines = diagnostics::event_lines(
        seen, {{at(1), "CONTAINER_RUNNING", "Sandbox is running."}, {at(2), "X", ""}});
    REQUIRE(lines == std::vector<std::string>{
                         "Container:  0123456789ab (sandbox-1)", "Status:     exited",
                         "Created:    1970-01-01T00:00:00Z", "Started:    1970-01-01T00:00:01Z",
                         "Finished:   1970-01-01T00:00:02Z",
                         "Event:      OOMKilled - the sandbox ran out of memory",
                         "Event:      Exited with code 137", "Health:     unhealthy",
                         "  exit 1: no answer",
                         "Event:      1970-01-01T00:00:01Z CONTAINER_RUNNING - Sandbox is running.",
                         "Event:      1970-01-01T00:00:02Z X"});
    runtime::Inspection fresh;
    fresh.object_id = "x";
    fresh.status = "created";
    REQUIRE(diagnostics::event_lines(fresh, {}).back() == "(no notable events)");
}

TEST_CASE("the summary boxes its sections") {
    std::string banner(72, '=');
    std::string rule(40, '-');
    REQUIRE(diagnostics::summary_text("id", "I", "E", "L", 7) ==
            banner + "\nSANDBOX DIAGNOSTICS SUMMARY\nSandbox ID: id\n" + banner + "\n\n" + rule +
                "\nINSPECT\n" + rule + "\nI\n\n" + rule + "\nEVENTS\n" + rule + "\nE\n\n" + rule +
                "\nLOGS (last 7 lines)\n" + rule + "\nL\n");
}

TEST_CASE("lines are cut from the right end, and the cut is told") {
    auto last = [](std::string_view text, std::size_t count) {
        auto cut = diagnostics::last_lines(text, count);
        return std::make_pair(cut.text, cut.truncated);
    };
    REQUIRE(last("", 2) == std::make_pair(std::string(), false));
    REQUIRE(last("a\nb\n", 2) == std::make_pair(std::string("a\nb\n"), false));
    REQUIRE(last("a\nb", 2) == std::make_pair(std::string("a\nb"), false));
    REQUIRE(last("a\nb\nc\n", 2) == std::make_pair(std::string("b\nc\n"), true));
    REQUIRE(last("\n\n\n", 2) == std::make_pair(std::string("\n\n"), true));
    auto first = diagnostics::first_lines({"a", "b", "c"}, 2);
    REQUIRE(first.text == "a\nb");
    REQUIRE(first.truncated);
    REQUIRE_FALSE(diagnostics::first_lines({"a"}, 1).truncated);
}

TEST_CASE("since is a number and a unit, ten minutes when it is anything else") {
    using std::chrono::seconds;
    REQUIRE(diagnostics::parse_since("90s") == seconds(90));
    REQUIRE(diagnostics::parse_since(" 2H ") == seconds(7200));
    REQUIRE(diagnostics::parse_since("7d") == seconds(604800));
    REQUIRE(diagnostics::parse_since("0m") == seconds(0));
    for (const char* text :
         {"", "5", "m", "-5m", "1.5h", "5 m", "x", "5w", "99999999999999999999999s"}) {
        INFO(text);
        REQUIRE(diagnostics::parse_since(text) == seconds(600));
    }
    REQUIRE(diagnostics::parse_since("9223372036854775807d") > seconds(0));
}

TEST_CASE("parameters have each route's names, limits and defaults") {
    using diagnostics::Page;
    using diagnostics::Parameters;
    auto parsed = [](Page page, std::string_view query) {
        return std::get<Parameters>(diagnostics::parse_parameters(page, query));
    };
    auto broken = [](Page page, std::string_view query) {
        return std::get<model::FieldErrors>(diagnostics::parse_parameters(page, query)).size();
    };
    REQUIRE(parsed(Page::logs, "").tail == 100);
    REQUIRE(parsed(Page::summary, "").tail == 50);
    REQUIRE(parsed(Page::summary, "").event_limit == 20);
    REQUIRE(parsed(Page::events, "").event_limit == 50);
    REQUIRE(parsed(Page::events, "limit=500&tail=x").event_limit == 500);
    REQUIRE(parsed(Page::logs, "since=what").since == std::chrono::seconds(600));
    REQUIRE_FALSE(parsed(Page::logs, "").since);
    REQUIRE(parsed(Page::logs, "scope=+CONTAINER%20").scope == "container");
    REQUIRE(parsed(Page::logs, "scope=").scope == "");
    REQUIRE_FALSE(parsed(Page::inspect, "scope=x&tail=x").scope);
    REQUIRE(broken(Page::logs, "tail=0") == 1);
    REQUIRE(broken(Page::logs, "tail=10001") == 1);
    REQUIRE(broken(Page::events, "limit=501") == 1);
    REQUIRE(broken(Page::summary, "tail=x&event_limit=0") == 2);
}
