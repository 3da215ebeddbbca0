#pragma once

#include "base/error.hpp"
#include "server/config/config.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::server {

/// The flags of `serve`; what is given wins over the configuration.
struct ServeOptions {
    ServeOptions() = default;
    bool help = false;
    std::string config;
    std::optional<std::string> host;
    std::optional<std::uint16_t> port;
    std::optional<std::string> state_dir;
    std::optional<log::Format> log_format;
    std::optional<log::Level> log_level;
};

/// The error names the flag.
Result<ServeOptions> parse_serve_options(const std::vector<std::string>& arguments);

void apply(const ServeOptions& options, Config& config);

std::string serve_usage();

}  // namespace opensandbox::server
