#include "server/background/metrics_exporter.hpp"

#include "base/log.hpp"
#include "net/task.hpp"
#include "version.hpp"

namespace opensandbox::server {
namespace {

constexpr std::string_view kScope = "opensandbox.server";
constexpr std::size_t kLargestAnswer = 64 * 1024;
constexpr std::string_view kThisMachine = "127.0.0.1";

http::ClientOptions client_options(std::chrono::milliseconds timeout) {
    http::ClientOptions options;
    options.connect_timeout = timeout;
    options.head_timeout = timeout;
    return options;
}

}  // namespace

Result<std::optional<ExportSettings>> read_export_settings(
    const OtelConfig& config, const telemetry::VariableLookup& environment) {
    const telemetry::VariableLookup lookup =
        [&](std::string_view name) -> std::optional<std::string> {
        if (name == "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT" && !config.endpoint.empty()) {
            return config.endpoint;
        }
        if (name == "OTEL_METRIC_EXPORT_INTERVAL" && config.export_interval_millis > 0) {
            return std::to_string(config.export_interval_millis);
        }
        return environment(name);
    };
    auto shared = telemetry::read_otlp_settings(lookup, kThisMachine);
    if (!shared) return shared.error().within("otel.endpoint");
    if (!*shared) return std::optional<ExportSettings>();
    ExportSettings settings(std::move(**shared));
    settings.service_name = config.service_name;
    return std::optional<ExportSettings>(std::move(settings));
}

MetricsExporter::MetricsExporter(asio::any_io_executor executor, ExportSettings settings,
                                 const ServerMetrics& metrics)
    : executor_(executor),
      settings_(std::move(settings)),
      metrics_(metrics),
      client_(std::move(executor), client_options(settings_.timeout)),
      ledger_(settings_.temporality, now()) {}

void MetricsExporter::start() {
    net::spawn(executor_, run(shared_from_this()), "metrics export");
}

Awaitable<void> MetricsExporter::run(std::shared_ptr<MetricsExporter> self) {
    while (true) {
        co_await net::sleep_for(self->settings_.interval);
        if (self->stopped_) co_return;
        auto sent = co_await self->send();
        bool failed = !sent;
        if (sent) self->ledger_.taken();
        // Once for each change: a collector that is away for a day is one line.
        if (failed && !self->failing_)
            log::warn("metrics could not be exported", {{"error", sent.error().message()}});
        if (!failed && self->failing_) log::info("metrics are exported again");
        self->failing_ = failed;
    }
}

std::string MetricsExporter::encode() {
    telemetry::Attributes resource{{"service.name", settings_.service_name},
                                   {"service.version", std::string(kVersion)}};
    telemetry::OtlpMetrics out(resource, kScope, kVersion, ledger_, now());
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
    net::Deadline deadline(executor_, settings_.timeout, [&answered] { answered.abort(); });
    int status = answered.head().status;
    auto body = co_await http::read_all(answered.body(), kLargestAnswer);
    if (!body) co_return body.error();
    if (status >= 200 && status < 300) co_return Status();
    co_return Error(ErrorCode::bad_gateway, "the collector answered " + std::to_string(status));
}

}  // namespace opensandbox::server
