#pragma once

#include "base/error.hpp"
#include "http/fields.hpp"
#include "http/url.hpp"
#include "telemetry/otlp_metrics.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::telemetry {

/// Where metrics go and how.
struct OtlpSettings {
    OtlpSettings() = default;
    http::Url endpoint;  ///< with the path to post to
    http::Fields headers;
    std::chrono::milliseconds interval{60'000};
    std::chrono::milliseconds timeout{10'000};
};

/// The value of an environment variable, or nothing.
using VariableLookup = std::function<std::optional<std::string>(std::string_view)>;

/// Reads the environment (execd contract 10, network contract 1.8):
/// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT as it stands, else OTEL_EXPORTER_OTLP_ENDPOINT with
/// /v1/metrics, else HOST_IP when that is an address, else the address in the text of
/// /etc/hostinfo, at port 4318. Empty when there is none of them. Fails when the endpoint cannot be
/// used. Pure.
Result<std::optional<OtlpSettings>> read_otlp_settings(const VariableLookup& environment,
                                                       std::string_view hostinfo);

/// The `name=value` pairs between commas that an environment variable adds to points; what is no
/// pair is left out. Pure.
Attributes read_attributes(std::string_view list);

/// The beginning of /etc/hostinfo; empty when there is none.
std::string read_hostinfo();

}  // namespace opensandbox::telemetry
