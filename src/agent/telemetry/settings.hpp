#pragma once

#include "agent/process/environment.hpp"
#include "http/fields.hpp"
#include "http/url.hpp"
#include "telemetry/otlp_metrics.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace opensandbox::agent {

/// Where metrics go and what goes with them.
struct TelemetrySettings {
    TelemetrySettings() = default;
    http::Url endpoint;  ///< with the path to post to
    http::Fields headers;
    std::chrono::milliseconds interval{60'000};
    std::chrono::milliseconds timeout{10'000};
    std::string sandbox_id;                   ///< may be empty
    telemetry::Attributes common_attributes;  ///< of every point
};

/// Reads the environment (execd contract 10): OTEL_EXPORTER_OTLP_METRICS_ENDPOINT as it stands,
/// else OTEL_EXPORTER_OTLP_ENDPOINT with /v1/metrics, else HOST_IP when that is an address, else
/// the address in the text of /etc/hostinfo, at port 4318. Empty when there is none of them. Fails
/// when the endpoint cannot be used. Pure.
Result<std::optional<TelemetrySettings>> read_telemetry_settings(const Environment& environment,
                                                                 std::string_view hostinfo);

}  // namespace opensandbox::agent
