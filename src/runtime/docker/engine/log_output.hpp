#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace opensandbox::runtime::docker {

/// Which lines of a container's output to fetch.
struct LogRequest {
    LogRequest() = default;
    explicit LogRequest(std::string c) : container(std::move(c)) {}
    std::string container;
    std::optional<std::uint32_t> tail;  ///< the last lines; empty: all
    std::optional<Timestamp> since;
    bool timestamps = false;  ///< each line begins with an RFC 3339 time and a space
    bool out = true;          ///< standard output
    bool err = true;          ///< standard error
    std::optional<bool> tty;  ///< whether the container has one; empty: asks the engine first
    std::size_t max_bytes = 1024 * 1024;  ///< the newest bytes kept
};

/// Both streams in the order in which the engine recorded them.
struct LogOutput {
    LogOutput() = default;
    std::string text;
    bool truncated = false;  ///< older bytes were dropped, or reading stopped at its limit
};

}  // namespace opensandbox::runtime::docker
