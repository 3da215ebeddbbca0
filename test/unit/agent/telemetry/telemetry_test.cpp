#include "agent/telemetry/telemetry.hpp"

#include "agent/telemetry/measurements.hpp"
#include "agent/telemetry/system.hpp"
#include "json/document.hpp"
#include "support/http_client_fixture.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"
#include "unit/telemetry/protobuf_reader.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <set>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using telemetry::testing::ProtobufReader;

namespace {

using Pairs = Environment::Pairs;

std::optional<TelemetrySettings> settings_of(const Pairs& pairs, std::string_view hostinfo = "") {
    auto settings = read_telemetry_settings(Environment(pairs), hostinfo);
    REQUIRE(settings.has_value());
    return *settings;
}

std::string endpoint_of(const Pairs& pairs, std::string_view hostinfo = "") {
    auto settings = settings_of(pairs, hostinfo);
    if (!settings) return "off";
    const http::Origin& origin = settings->endpoint.origin;
    return origin.host + " " + std::to_string(origin.port) + " " + settings->endpoint.path;
}

/// Every point of a body: metric name to the attributes of its points.
std::map<std::string, std::vector<std::map<std::string, std::string>>> points_of(
    const std::string& body) {
    std::map<std::string, std::vector<std::map<std::string, std::string>>> points;
    for (const auto& metric : ProtobufReader(body).message(1).message(2).all(2)) {
        ProtobufReader reader(metric.bytes);
        for (unsigned kind : {5U, 7U, 9U}) {
            for (const auto& data : reader.all(kind)) {
                for (const auto& point : ProtobufReader(data.bytes).all(1)) {
                    std::map<std::string, std::string> attributes;
                    for (const auto& pair : ProtobufReader(point.bytes).all(kind == 9 ? 9 : 7)) {
                        ProtobufReader attribute(pair.bytes);
                        auto value = attribute.message(2);
                        attributes[attribute.text(1)] =
                            value.all(1).empty() ? std::to_string(value.number(3)) : value.text(1);
                    }
                    points[reader.text(1)].push_back(std::move(attributes));
                }
            }
        }
    }
    return points;
}

/// Takes exports and keeps the last one.
struct Collector {
    explicit Collector(http::test::Loop& loop)
        : server(loop, [this](http::Exchange& exchange) -> Awaitable<void> {
              auto content = co_await http::read_all(exchange.body(), 1'000'000);
              if (content) body = *content;
              head = exchange.request();
              ++exports;
              co_await exchange.respond(http::Response(status));
          }) {}
    std::string body;
    http::RequestHead head;
    int exports = 0;
    int status = 200;
    http::test::TestServer server;
};

AgentOptions exporting_to(std::uint16_t port, const std::string& interval) {
    AgentOptions options;
    options.environment = {
        {"PATH", "/usr/bin:/bin"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:" + std::to_string(port)},
        {"OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"},
        {"OTEL_METRIC_EXPORT_INTERVAL", interval},
        // Every export has everything.
        {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative"},
        {"OPENSANDBOX_ID", "box-1"},
        {"OPENSANDBOX_EXECD_METRICS_EXTRA_ATTRS", "team=red,shift=night"},
    };
    return options;
}

}  // namespace

TEST_CASE("Telemetry: the endpoint is taken from the first source that names one") {
    CHECK(endpoint_of({}) == "off");
    CHECK(endpoint_of({{"HOST_IP", "not an address"}}) == "off");
    CHECK(endpoint_of({}, "node-7\n") == "off");
    const Pairs all{{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:1/own"},
                    {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://e:2/base/"},
                    {"HOST_IP", "10.0.0.1"}};
    CHECK(endpoint_of(all, "10.0.0.2") == "m 1 /own");
    CHECK(endpoint_of({all[1], all[2]}, "10.0.0.2") == "e 2 /base/v1/metrics");
    CHECK(endpoint_of({all[2]}, "10.0.0.2") == "10.0.0.1 4318 /v1/metrics");
    CHECK(endpoint_of({}, " 10.0.0.2\n") == "10.0.0.2 4318 /v1/metrics");
    CHECK(endpoint_of({{"HOST_IP", "fd00::1"}}) == "fd00::1 4318 /v1/metrics");
    CHECK(endpoint_of({{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:1"}}) == "m 1 /");
    auto secure = read_telemetry_settings(
        Environment(Pairs{{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://e"}}), "");
    REQUIRE(secure);
    REQUIRE(secure.value());
    CHECK(secure.value()->endpoint.origin.tls != nullptr);
}

TEST_CASE("Telemetry: interval, headers and attributes come from the environment") {
    Pairs pairs{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://e"},
                {"OTEL_METRIC_EXPORT_INTERVAL", "250"},
                {"OTEL_EXPORTER_OTLP_HEADERS", "a=1, b = two%2C ,broken,bad name=x,c=%0d%0ay"},
                {"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a=9"},
                {"OPENSANDBOX_ID", "box"},
                {"OPENSANDBOX_EXECD_METRICS_EXTRA_ATTRS", "k=v,k2=v=2,=x"}};
    auto settings = settings_of(pairs);
    REQUIRE(settings);
    CHECK(settings->interval == std::chrono::milliseconds(250));
    CHECK(settings->headers.size() == 2);
    CHECK(settings->headers.get("a") == "9");
    CHECK(settings->headers.get("b") == "two,");
    CHECK(settings->common_attributes ==
          telemetry::Attributes{{"sandbox_id", "box"}, {"k", "v"}, {"k2", "v=2"}});
    for (const char* wrong : {"0", "-5", "x", "1s", ""}) {
        pairs[1].second = wrong;
        CHECK(settings_of(pairs)->interval == std::chrono::seconds(60));
    }
}

TEST_CASE("Telemetry: the environment turns exports off") {
    Pairs pairs{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://e"}, {"", ""}};
    for (const char* on : {"false", "1", "yes", ""}) {
        pairs[1] = {"OTEL_SDK_DISABLED", on};
        CHECK(settings_of(pairs));
    }
    for (const char* off : {"true", "TRUE", " True "}) {
        pairs[1] = {"OTEL_SDK_DISABLED", off};
        CHECK_FALSE(settings_of(pairs));
    }
    for (const char* off : {"none", "NONE"}) {
        pairs[1] = {"OTEL_METRICS_EXPORTER", off};
        CHECK_FALSE(settings_of(pairs));
    }
    pairs[1] = {"OTEL_METRICS_EXPORTER", "otlp"};
    CHECK(settings_of(pairs)->ignored.empty());
    pairs[1] = {"OTEL_METRICS_EXPORTER", "prometheus"};
    REQUIRE(settings_of(pairs)->ignored.size() == 1);
    CHECK_THAT(settings_of(pairs)->ignored[0], Catch::StartsWith("OTEL_METRICS_EXPORTER: "));
}

TEST_CASE("Telemetry: the temporality that is preferred is the published default") {
    using Preference = telemetry::TemporalityPreference;
    Pairs pairs{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://e"},
                {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", ""}};
    auto preference = [&](const char* text) {
        pairs[1].second = text;
        return settings_of(pairs)->temporality;
    };
    CHECK(preference("") == Preference::low_memory);
    CHECK(preference("cumulative") == Preference::cumulative);
    CHECK(preference("Delta") == Preference::delta);
    CHECK(preference("LOWMEMORY") == Preference::low_memory);
    CHECK(preference("low_memory") == Preference::low_memory);
    CHECK(settings_of(pairs)->ignored.size() == 1);
}

TEST_CASE("Telemetry: routes are labelled by their template, file routes by their operation") {
    CHECK(route_label("/command/status/{id}") == "/command/status/:id");
    CHECK(route_label("/proxy/{port}/{rest...}") == "/proxy/:port/*rest");
    CHECK(route_label("") == "unknown");
    CHECK(route_label("/odd/{open") == "/odd/:open");
    CHECK(file_operation("GET", "/files/download") == "download");
    CHECK(file_operation("POST", "/v1/filesystem/{uid}/{gid}/directories") == "mkdir");
    CHECK(file_operation("GET", "/v1/isolated/session/{id}/files/info") == "info");
    CHECK(file_operation("POST", "/files/download").empty());
    CHECK(file_operation("GET", "/v1/isolated/sessions").empty());
}

TEST_CASE("Telemetry: figures are read from the text of /proc") {
    Traffic traffic = read_traffic(
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
        "    lo: 9000 10 0 0 0 0 0 0 9000 10 0 0 0 0 0 0\n"
        "  eth0: 1500 3 0 0 0 0 0 0 2500 4 0 0 0 0 0 0\n"
        "veth1:7 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0");
    CHECK(traffic.in == 1507);
    CHECK(traffic.out == 2509);
    CHECK(read_traffic("").in == 0);
    const char* sockets =
        "  sl  local_address rem_address   st tx_queue\n"
        "   0: 0100007F:0277 00000000:0000 0A 00000000:00000000\n"
        "   1: 0100007F:A1B2 0100007F:0277 01 00000000:00000000\n";
    CHECK(count_sockets(sockets, true) == 1);
    CHECK(count_sockets(sockets, false) == 2);
    CHECK(count_sockets("", false) == 0);
}

TEST_CASE("Telemetry: an agent exports all metrics of the contract with their attributes") {
    http::test::Loop loop;
    Collector collector(loop);
    AgentProcess agent(exporting_to(collector.server.port, "50"));
    agent.command(shell_request("true"));
    agent.command(shell_request("exit 3"));
    agent.call("POST", "/code", R"({"code":"true","context":{"language":"bash"}})");
    Reply session = agent.call("POST", "/session");
    std::string id(json::parse(session.body)->at("session_id").as_string());
    agent.call("POST", "/session/" + id + "/run", R"({"command":"exit 4"})");
    agent.call("GET", "/files/info?path=/");
    agent.call("GET", "/files/info?path=/no/such");
    agent.call("GET", "/command/status/nobody");
    agent.call("BREW", "/no/such/route");
    loop.run([&]() -> Awaitable<void> {
        int seen = collector.exports;
        while (collector.exports < seen + 2)
            co_await net::sleep_for(std::chrono::milliseconds(5));
    });
    CHECK(collector.head.target == "/v1/metrics");
    CHECK(collector.head.fields.get("Content-Type") == "application/x-protobuf");
    CHECK(collector.head.fields.get("x-key") == "a b");

    auto points = points_of(collector.body);
    std::set<std::string> names;
    for (const auto& [name, list] : points) {
        names.insert(name);
        for (auto attributes : list) {
            INFO(name);
            CHECK(attributes["sandbox_id"] == "box-1");
            CHECK(attributes["team"] == "red");
            CHECK(attributes["shift"] == "night");
        }
    }
    CHECK(names == std::set<std::string>{
                       "execd.http.request.duration", "execd.execution.duration",
                       "execd.filesystem.operations.duration", "execd.system.process.count",
                       "execd.system.cpu.usage", "execd.system.memory.usage_bytes",
                       "execd.system.network.io.bytes", "execd.system.network.connections.active"});
    std::set<std::string> requests;
    for (auto& point : points["execd.http.request.duration"]) {
        requests.insert(point["http_method"] + " " + point["http_route"] + " " +
                        point["http_status_code"]);
    }
    CHECK(requests == std::set<std::string>{"POST /command 200", "POST /code 200",
                                            "POST /session 200", "POST /session/:id/run 200",
                                            "GET /files/info 200", "GET /files/info 404",
                                            "GET /command/status/:id 404", "_OTHER unknown 404"});
    auto results = [&](const char* metric) {
        std::set<std::string> out;
        for (auto& point : points[metric])
            out.insert(point["operation"] + " " + point["result"]);
        return out;
    };
    CHECK(results("execd.execution.duration") ==
          std::set<std::string>{"run_command success", "run_command failure", "run_code success",
                                "run_in_session failure"});
    CHECK(results("execd.filesystem.operations.duration") ==
          std::set<std::string>{"info success", "info failure"});
}

TEST_CASE("Telemetry: what was measured since the last export is sent at the end") {
    http::test::Loop loop;
    Collector collector(loop);
    AgentProcess agent(exporting_to(collector.server.port, "3600000"));
    agent.command(shell_request("true"));
    agent.signal(SIGTERM);
    loop.run([&]() -> Awaitable<void> {
        while (collector.exports == 0)
            co_await net::sleep_for(std::chrono::milliseconds(5));
    });
    CHECK(agent.wait() == 0);
    CHECK(points_of(collector.body).contains("execd.execution.duration"));
}

TEST_CASE("Telemetry: an agent whose collector is missing or refuses works and ends as usual") {
    http::test::Loop loop;
    Collector collector(loop);
    AgentProcess agent(exporting_to(9, "20"));
    for (int i = 0; i < 5; ++i)
        CHECK(agent.call("GET", "/ping").status == 200);
    agent.signal(SIGTERM);
    CHECK(agent.wait() == 0);
    AgentProcess secure([] {
        AgentOptions options;
        options.environment = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1"}};
        return options;
    }());
    CHECK(secure.ready().empty());
    CHECK(secure.call("GET", "/ping").status == 200);
}
