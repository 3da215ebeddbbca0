#pragma once

#include "egress/audit/post.hpp"
#include "telemetry/otlp_settings.hpp"

#include <functional>
#include <string>

namespace opensandbox::egress {

/// Sends metrics to an OTLP collector (network contract 1.8). One event loop.
class MetricsExport {
  public:
    /// `collect` writes the protobuf body of one export.
    using Collect = std::function<std::string(telemetry::ExportLedger&)>;
    MetricsExport(asio::any_io_executor executor, telemetry::OtlpSettings settings,
                  Timestamp started, ConnectOrigin connect, Collect collect);

    /// Every interval until it is cancelled. What could not be sent is in the next export; it is
    /// warned of when it begins to fail.
    Awaitable<void> run();
    /// Once, for at most so long.
    Awaitable<void> send(std::chrono::milliseconds limit);

  private:
    asio::any_io_executor executor_;
    telemetry::OtlpSettings settings_;
    ConnectOrigin connect_;
    Collect collect_;
    telemetry::ExportLedger ledger_;
    bool failing_ = false;
};

}  // namespace opensandbox::egress
