#pragma once

#include "http/client.hpp"
#include "server/config/config.hpp"
#include "server/server_metrics.hpp"
#include "telemetry/otlp_settings.hpp"

#include <memory>
#include <optional>
#include <string>

namespace opensandbox::server {

/// Where metrics go and under which name.
struct ExportSettings : telemetry::OtlpSettings {
    explicit ExportSettings(telemetry::OtlpSettings shared) : OtlpSettings(std::move(shared)) {}
    std::string service_name;
};

/// The environment as telemetry::read_otlp_settings() reads it, but that `otel.endpoint` goes
/// before its endpoints, `otel.export_interval_millis` before its interval, and that the collector
/// is on this machine when nothing names one. Empty when the environment turns exports off. Fails
/// when the endpoint cannot be used.
Result<std::optional<ExportSettings>> read_export_settings(
    const OtelConfig& config, const telemetry::VariableLookup& environment);

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
    std::string encode();

    asio::any_io_executor executor_;
    ExportSettings settings_;
    const ServerMetrics& metrics_;
    http::Client client_;
    telemetry::ExportLedger ledger_;
    bool failing_ = false;
    bool stopped_ = false;
};

}  // namespace opensandbox::server
