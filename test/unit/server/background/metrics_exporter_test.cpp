#include "server/background/metrics_exporter.hpp"

#include "unit/server/api/app_fixture.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace opensandbox;
using namespace opensandbox::server;
using Catch::Contains;
using http::test::TestServer;
using test_support::AppFixture;

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
