#pragma once

#include "base/error.hpp"
#include "http/fields.hpp"
#include "http/url.hpp"
#include "telemetry/export_ledger.hpp"
#include "telemetry/otlp_metrics.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::telemetry {

/// Where metrics go and how.
struct OtlpSettings {
    http::Url endpoint;  ///< with the path to post to
    http::Fields headers;
    std::chrono::milliseconds interval{60'000};
    std::chrono::milliseconds timeout{10'000};
    TemporalityPreference temporality = TemporalityPreference::low_memory;
    std::vector<std::string> ignored;  ///< what was asked for and is not known, for the log
};

/// The value of an environment variable, or nothing.
using VariableLookup = std::function<std::optional<std::string>(std::string_view)>;

/// Reads the variables of the environment that exports follow (execd contract 10, network contract
/// 1.8); otlp_help() lists them. The endpoint is the one of the first that names one, else the
/// address in the text of /etc/hostinfo, at port 4318. Empty when there is none, or exports are
/// turned off. Fails when the endpoint cannot be used. Pure.
Result<std::optional<OtlpSettings>> read_otlp_settings(const VariableLookup& environment,
                                                       std::string_view hostinfo);

/// What the variables mean, for help texts: a line for each, indented by two spaces.
std::string otlp_help();
/// Warns of what was ignored.
void log_ignored(const OtlpSettings& settings);

/// The `name=value` pairs between commas that an environment variable adds to points; what is no
/// pair is left out. Pure.
Attributes read_attributes(std::string_view list);

/// The beginning of /etc/hostinfo; empty when there is none.
std::string read_hostinfo();

}  // namespace opensandbox::telemetry
