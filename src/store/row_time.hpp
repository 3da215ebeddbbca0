#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>

/// Times inside a column: microseconds since the epoch.
namespace opensandbox::store {

inline std::int64_t micros(Timestamp at) {
    return at.time_since_epoch().count();
}

inline std::optional<std::int64_t> micros(const std::optional<Timestamp>& at) {
    if (!at) return std::nullopt;
    return micros(*at);
}

inline Timestamp from_micros(std::int64_t number) {
    return Timestamp(std::chrono::microseconds(number));
}

}  // namespace opensandbox::store
