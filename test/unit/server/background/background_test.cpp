#include "server/background/background.hpp"

#include "server/background/log_files.hpp"
#include "server/role/startup_prompt.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"
#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <pty.h>
#include <thread>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::server;
using Catch::Contains;
using http::test::TestServer;
using test_support::AppFixture;
using test_support::ScratchDirectory;

namespace {

std::string text_of(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// What a person at a terminal would cause by typing `typed`.
bool answer_prompt(const std::string& typed) {
    int controller = -1;
    int terminal = -1;
    REQUIRE(::openpty(&controller, &terminal, nullptr, nullptr, nullptr) == 0);
    UniqueFd ours(controller);
    UniqueFd theirs(terminal);
    REQUIRE(::write(ours.get(), typed.data(), typed.size()) == static_cast<ssize_t>(typed.size()));
    auto patience = typed.ends_with('\n') ? std::chrono::seconds(20) : std::chrono::seconds(0);
    return confirm_insecure_start(theirs.get(), theirs.get(), patience);
}

}  // namespace

TEST_CASE("a rotating file is turned over when it is full and keeps so many") {
    ScratchDirectory scratch;
    auto path = scratch.path / "deep" / "er" / "x.log";
    auto opened = log::RotatingFile::open(path, 20, 2);
    REQUIRE(opened.has_value());
    for (const char* line : {"aaaaaaaaa\n", "bbbbbbbbb\n", "ccccccccc\n", "ddddddddd\n",
                             "eeeeeeeee\n", "fffffffff\n", "ggggggggg\n"})
        opened.value()->append(line);
    CHECK(text_of(path) == "ggggggggg\n");
    CHECK(text_of(path.string() + ".1") == "eeeeeeeee\nfffffffff\n");
    CHECK(text_of(path.string() + ".2") == "ccccccccc\nddddddddd\n");
    CHECK_FALSE(std::filesystem::exists(path.string() + ".3"));
    auto again = log::RotatingFile::open(path, 20, 0);
    again.value()->append("hhhhhhhhh\n");
    again.value()->append("iiiiiiiii\n");
    CHECK(text_of(path) == "iiiiiiiii\n");
    CHECK_FALSE(log::RotatingFile::open("/proc/none/x.log", 0, 0).has_value());
}

TEST_CASE("log files: requests go to one, the rest to the other") {
    ScratchDirectory scratch;
    LogFileConfig config;
    CHECK(LogFiles::open(config).value() == nullptr);
    config.enabled = true;
    config.path = scratch.path / "server.log";
    {
        auto files = LogFiles::open(config);
        REQUIRE(files.has_value());
        log::info("request", {{"path", "/x"}});
        log::info("started");
    }
    log::info("after");
    CHECK_THAT(text_of(scratch.path / "access.log"), Contains("path=/x") && !Contains("started"));
    CHECK_THAT(text_of(scratch.path / "server.log"), Contains("started") && !Contains("/x"));
    CHECK_THAT(text_of(scratch.path / "server.log"), !Contains("after"));
}

TEST_CASE("the startup prompt takes YES from a terminal and nothing else") {
    CHECK(answer_prompt("YES\n"));
    CHECK_FALSE(answer_prompt("yes\n"));
    CHECK_FALSE(answer_prompt("YES!\n"));
    CHECK_FALSE(answer_prompt("\n"));
    CHECK_FALSE(answer_prompt(""));
    int pipes[2];
    REQUIRE(::pipe(pipes) == 0);
    UniqueFd in(pipes[0]);
    UniqueFd out(pipes[1]);
    REQUIRE(::write(out.get(), "YES\n", 4) == 4);
    CHECK_FALSE(confirm_insecure_start(in.get(), out.get(), std::chrono::seconds(5)));
}

namespace {

std::optional<std::string> nothing_set(std::string_view) {
    return std::nullopt;
}

}  // namespace

TEST_CASE("metrics export: both histograms arrive as protobuf, in milliseconds") {
    AppFixture f;
    std::string received;
    std::string type;
    std::string token;
    TestServer collector(f.loop, [&](http::Exchange& x) -> Awaitable<void> {
        type = x.request().fields.get("Content-Type").value_or("");
        auto body = co_await http::read_all(x.body(), 1 << 20);
        received = body.value();
        auto response = http::Response(200);
        co_await x.respond(std::move(response));
    });
    ServerMetrics metrics;
    metrics.record_request("GET", "/v1/sandboxes/{sandbox_id}", 200, std::chrono::milliseconds(3));
    metrics.record_request("BREW", "", 404, std::chrono::milliseconds(3));
    metrics.record_client_create("OpenSandbox-Python-SDK/1.1.1", true, 150);
    OtelConfig config;
    config.endpoint = "http://127.0.0.1:" + std::to_string(collector.port) + "/v1/metrics";
    config.service_name = "ours";
    auto read = read_export_settings(config, nothing_set);
    REQUIRE(read.has_value());
    std::optional<ExportSettings>& settings = *read;
    REQUIRE(settings.has_value());
    settings->interval = std::chrono::milliseconds(5);
    auto exporter = std::make_shared<MetricsExporter>(f.loop.executor(), *settings, metrics);
    exporter->start();
    f.until([&] { return !received.empty(); });
    exporter->stop();
    CHECK(type == "application/x-protobuf");
    for (const char* part :
         {"server.http.request.duration", "opensandbox.sandbox.create.duration", "service.name",
          "ours", "opensandbox.server", "http_method", "http_route", "http_status_code", "OTHER",
          "/v1/sandboxes/{sandbox_id}", "unknown", "sdk.language", "python", "sdk.version", "1.1.1",
          "success"}) {
        INFO(part);
        CHECK_THAT(received, Contains(part));
    }
    f.loop.run([]() -> Awaitable<void> { co_await net::sleep_for(std::chrono::milliseconds(20)); });
}

TEST_CASE("metrics export: the environment is read as everywhere, the configuration before it") {
    OtelConfig config;
    config.export_interval_millis = 0;
    std::map<std::string, std::string, std::less<>> environment;
    auto settings = [&]() -> std::optional<ExportSettings> {
        auto read = read_export_settings(config, [&](std::string_view name) {
            auto found = environment.find(name);
            return found == environment.end() ? std::nullopt
                                              : std::optional<std::string>(found->second);
        });
        REQUIRE(read.has_value());
        return *read;
    };
    CHECK(settings()->endpoint.origin.port == 4318);
    CHECK(settings()->endpoint.path == "/v1/metrics");
    CHECK(settings()->temporality == telemetry::TemporalityPreference::low_memory);
    environment = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://e:1"},
                   {"OTEL_METRIC_EXPORT_INTERVAL", "250"},
                   {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Cumulative"}};
    CHECK(settings()->endpoint.origin.host == "e");
    CHECK(settings()->interval == std::chrono::milliseconds(250));
    CHECK(settings()->temporality == telemetry::TemporalityPreference::cumulative);
    config.endpoint = "http://c:2/own";
    config.export_interval_millis = 500;
    CHECK(settings()->endpoint.origin.host == "c");
    CHECK(settings()->interval == std::chrono::milliseconds(500));
    environment["OTEL_SDK_DISABLED"] = "TRUE";
    CHECK_FALSE(settings().has_value());
    environment = {{"OTEL_METRICS_EXPORTER", "None"}};
    CHECK_FALSE(settings().has_value());
}

TEST_CASE("metrics export: an endpoint that cannot be used is told at the start") {
    OtelConfig config;
    config.endpoint = "http://";
    auto settings = read_export_settings(config, nothing_set);
    REQUIRE_FALSE(settings.has_value());
    CHECK_THAT(settings.error().message(), Contains("otel.endpoint"));
}

TEST_CASE("quota: a create beyond it is answered 429 with the figures") {
    AppFixture f;
    f.config.quota.max_sandboxes = 1;
    f.make();
    auto refused = f.send("POST", "/v1/sandboxes",
                          R"({"image":{"uri":"host"},"entrypoint":["sleep","1"],"timeout":600,)"
                          R"("resourceLimits":{}})");
    CHECK(refused.status == 429);
    CHECK(refused.code() == "SANDBOX::QUOTA_EXCEEDED");
    CHECK(refused.field("Retry-After") == "5");
    CHECK_THAT(refused.body, Contains("max_sandboxes = 1"));
}
