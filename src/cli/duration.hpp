#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::cli {

/// "90" (seconds), "30s", "10m", "1h30m45s", "2d", "500ms"; empty when malformed, zero or longer
/// than ten years.
std::optional<std::chrono::milliseconds> parse_duration_text(std::string_view text);

/// "0:10:00", "1 day, 2:00:00": as `sandbox create` reports a lifetime (clients 1).
std::string to_clock_text(std::chrono::seconds duration);

}  // namespace opensandbox::cli
