#pragma once

#include "egress/audit/post.hpp"
#include "telemetry/otlp_settings.hpp"

#include <functional>
#include <string>

namespace opensandbox::egress {

/// Sends metrics to an OTLP collector (network contract 1.8). One event loop.
class MetricsExport {
  public:
    /// `collect` gives the protobuf body of one export.
    MetricsExport(asio::any_io_executor executor, telemetry::OtlpSettings settings,
                  ConnectOrigin connect, std::function<std::string()> collect);

    /// Every interval until it is cancelled. What could not be sent is in the next export, as
    /// everything counts from the start; it is warned of when it begins to fail.
    Awaitable<void> run();
    /// Once, for at most so long.
    Awaitable<void> send(std::chrono::milliseconds limit);

  private:
    asio::any_io_executor executor_;
    telemetry::OtlpSettings settings_;
    ConnectOrigin connect_;
    std::function<std::string()> collect_;
    bool failing_ = false;
};

}  // namespace opensandbox::egress
