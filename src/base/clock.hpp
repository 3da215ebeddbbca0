#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox {

/// Wall-clock instants, microseconds since the epoch, UTC.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// Now, cut to microseconds.
Timestamp now();

/// Milliseconds since the epoch, as stream events and metrics carry them.
std::int64_t to_millis(Timestamp t);

/// RFC 3339 in UTC with `Z`: six fractional digits, or none when they are zero (lifecycle 1.1).
std::string to_rfc3339(Timestamp t);

/// Any offset, fraction cut to microseconds, no offset means UTC, `T` or a space between date and
/// time (lifecycle 1.1). Empty on anything else.
std::optional<Timestamp> parse_rfc3339(std::string_view text);

/// Go-style durations ("1.5s", "250ms", "1m30s", "2h"); empty when malformed.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace opensandbox
