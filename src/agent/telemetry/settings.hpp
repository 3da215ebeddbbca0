#pragma once

#include "agent/process/environment.hpp"
#include "telemetry/otlp_settings.hpp"

#include <optional>
#include <string>

namespace opensandbox::agent {

/// Where metrics go and what goes with them.
struct TelemetrySettings : telemetry::OtlpSettings {
    explicit TelemetrySettings(telemetry::OtlpSettings shared) : OtlpSettings(std::move(shared)) {}
    std::string sandbox_id;                   ///< may be empty
    telemetry::Attributes common_attributes;  ///< of every point
};

/// Reads the environment as telemetry::read_otlp_settings() does, with OPENSANDBOX_ID and
/// OPENSANDBOX_EXECD_METRICS_EXTRA_ATTRS. Pure.
Result<std::optional<TelemetrySettings>> read_telemetry_settings(const Environment& environment,
                                                                 std::string_view hostinfo);

}  // namespace opensandbox::agent
