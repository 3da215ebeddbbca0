#pragma once

#include "base/clock.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::model {

/// A time as clients write it (lifecycle 1.1): RFC 3339 with any offset, without one meaning UTC,
/// seconds optional, a date alone meaning its midnight, or an epoch number as text. Fractions are
/// cut to microseconds. On failure `why` says what is wrong.
std::optional<Timestamp> parse_timestamp(std::string_view text, std::string& why);

/// Seconds since the epoch; milliseconds when the value is past 2e10. Years 1 to 9999.
std::optional<Timestamp> timestamp_from_number(double value, std::string& why);

/// The last moment a timestamp may name: the end of year 9999.
Timestamp latest_timestamp();

}  // namespace opensandbox::model
