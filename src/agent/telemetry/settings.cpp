#include "agent/telemetry/settings.hpp"

#include <algorithm>
#include <iterator>

namespace opensandbox::agent {

Result<std::optional<TelemetrySettings>> read_telemetry_settings(const Environment& environment,
                                                                 std::string_view hostinfo) {
    const telemetry::VariableLookup lookup =
        [&](std::string_view name) -> std::optional<std::string> {
        const auto value = environment.get(name);
        if (!value) return std::nullopt;
        return std::string(*value);
    };
    auto shared = telemetry::read_otlp_settings(lookup, hostinfo);
    if (!shared) return shared.error();
    if (!*shared) return std::optional<TelemetrySettings>();
    TelemetrySettings settings(std::move(**shared));
    settings.sandbox_id = environment.get("OPENSANDBOX_ID").value_or("");
    const std::size_t begin = settings.sandbox_id.find_first_not_of(" \t\r\n");
    settings.sandbox_id.erase(0, begin);
    settings.sandbox_id.erase(settings.sandbox_id.find_last_not_of(" \t\r\n") + 1);
    if (!settings.sandbox_id.empty()) {
        settings.common_attributes.emplace_back("sandbox_id", settings.sandbox_id);
    }
    auto more = telemetry::read_attributes(
        environment.get("OPENSANDBOX_EXECD_METRICS_EXTRA_ATTRS").value_or(""));
    std::ranges::move(more, std::back_inserter(settings.common_attributes));
    return std::optional<TelemetrySettings>(std::move(settings));
}

}  // namespace opensandbox::agent
