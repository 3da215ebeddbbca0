#pragma once

#include "http/client.hpp"
#include "http/url.hpp"
#include "server/config/config.hpp"
#include "server/server_metrics.hpp"

#include <memory>
#include <string>

namespace opensandbox::server {

/// Where metrics go.
struct ExportSettings {
    ExportSettings() = default;
    http::Url endpoint;
    http::Fields headers;
    std::string service_name;
    std::chrono::milliseconds interval{60'000};
};

/// `otel.endpoint` as it stands, else OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, else
/// OTEL_EXPORTER_OTLP_ENDPOINT with /v1/metrics, else the collector of this machine. Headers come
/// from OTEL_EXPORTER_OTLP_METRICS_HEADERS, else OTEL_EXPORTER_OTLP_HEADERS. Fails when the
/// endpoint cannot be used.
Result<ExportSettings> read_export_settings(const OtelConfig& config);

/// Sends the histograms of lifecycle 9 as OTLP over HTTP, again and again.
class MetricsExporter : public std::enable_shared_from_this<MetricsExporter> {
  public:
    /// `metrics` is borrowed until stop().
    MetricsExporter(asio::any_io_executor executor, ExportSettings settings,
                    const ServerMetrics& metrics);

    void start();
    void stop() { stopped_ = true; }

  private:
    static Awaitable<void> run(std::shared_ptr<MetricsExporter> self);
    Awaitable<Status> send();
    [[nodiscard]] std::string encode() const;

    asio::any_io_executor executor_;
    ExportSettings settings_;
    const ServerMetrics& metrics_;
    http::Client client_;
    Timestamp started_;
    bool failing_ = false;
    bool stopped_ = false;
};

}  // namespace opensandbox::server
