#include "server/background/metrics_exporter.hpp"

#include "base/log.hpp"
#include "net/task.hpp"
#include "version.hpp"

#include <cstdlib>

namespace opensandbox::server {
namespace {

constexpr std::string_view kScope = "opensandbox.server";
constexpr std::chrono::seconds kTimeout{10};
constexpr std::size_t kLargestAnswer = 64 * 1024;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string endpoint_of(const OtelConfig& config) {
    if (!config.endpoint.empty()) return config.endpoint;
    if (auto url = variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"); !url.empty()) return url;
    std::string url = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (url.empty()) url = "http://127.0.0.1:4318";
    while (url.ends_with('/'))
        url.pop_back();
    return url + "/v1/metrics";
}

/// `name=value` pairs between commas.
http::Fields headers_of(std::string_view list) {
    http::Fields fields;
    while (!list.empty()) {
        auto comma = list.find(',');
        std::string_view pair = list.substr(0, comma);
        list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
        auto equals = pair.find('=');
        if (equals == 0 || equals == std::string_view::npos) continue;
        std::string_view raw = pair.substr(equals + 1);
        auto value = http::percent_decode(raw);
        fields.set(pair.substr(0, equals), value ? *value : std::string(raw));
    }
    return fields;
}

http::ClientOptions client_options() {
    http::ClientOptions options;
    options.connect_timeout = kTimeout;
    options.head_timeout = kTimeout;
    return options;
}

}  // namespace

Result<ExportSettings> read_export_settings(const OtelConfig& config) {
    auto url = http::parse_url(endpoint_of(config));
    if (!url) return url.error().within("otel.endpoint");
    ExportSettings settings;
    settings.endpoint = std::move(url.value());
    if (settings.endpoint.path.empty()) settings.endpoint.path = "/";
    std::string headers = variable("OTEL_EXPORTER_OTLP_METRICS_HEADERS");
    if (headers.empty()) headers = variable("OTEL_EXPORTER_OTLP_HEADERS");
    settings.headers = headers_of(headers);
    settings.service_name = config.service_name;
    settings.interval = std::chrono::milliseconds(config.export_interval_millis);
    return settings;
}

MetricsExporter::MetricsExporter(asio::any_io_executor executor, ExportSettings settings,
                                 const ServerMetrics& metrics)
    : executor_(executor),
      settings_(std::move(settings)),
      metrics_(metrics),
      client_(std::move(executor), client_options()),
      started_(now()) {}

void MetricsExporter::start() {
    net::spawn(executor_, run(shared_from_this()), "metrics export");
}

Awaitable<void> MetricsExporter::run(std::shared_ptr<MetricsExporter> self) {
    while (true) {
        co_await net::sleep_for(self->settings_.interval);
        if (self->stopped_) co_return;
        auto sent = co_await self->send();
        bool failed = !sent;
        // Once for each change: a collector that is away for a day is one line.
        if (failed && !self->failing_)
            log::warn("metrics could not be exported", {{"error", sent.error().message()}});
        if (!failed && self->failing_) log::info("metrics are exported again");
        self->failing_ = failed;
    }
}

std::string MetricsExporter::encode() const {
    telemetry::Attributes resource{{"service.name", settings_.service_name},
                                   {"service.version", std::string(kVersion)}};
    telemetry::OtlpMetrics out(resource, kScope, kVersion, started_, now());
    metrics_.write(out);
    return out.finish();
}

Awaitable<Status> MetricsExporter::send() {
    http::ClientRequest request("POST", settings_.endpoint.path, settings_.headers);
    request.head.fields.set("Content-Type", "application/x-protobuf");
    request.content = encode();
    auto response = co_await client_.send(settings_.endpoint.origin, std::move(request));
    if (!response) co_return response.error();
    http::ClientResponse& answered = **response;
    net::Deadline deadline(executor_, kTimeout, [&answered] { answered.abort(); });
    int status = answered.head().status;
    auto body = co_await http::read_all(answered.body(), kLargestAnswer);
    if (!body) co_return body.error();
    if (status >= 200 && status < 300) co_return Status();
    co_return Error(ErrorCode::bad_gateway, "the collector answered " + std::to_string(status));
}

}  // namespace opensandbox::server
