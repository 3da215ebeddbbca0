#pragma once

#include "base/error.hpp"
#include "server/config/config.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// What `serve` reads and asks before it begins: flags, the key, a person on the terminal.
namespace opensandbox::server {

/// The flags of `serve`; what is given wins over the configuration.
struct ServeOptions {
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

/// The key that clients must send: OPENSANDBOX_SERVER_API_KEY when it is set (even empty), else
/// server.api_key, else, unless tenants have keys of their own, the one in the state directory,
/// which is made (mode 0600) when missing. Empty: no authentication.
Result<std::string> resolve_api_key(const Config& config, const std::filesystem::path& state_dir);

/// Asks a person on a terminal whether the server may start without any key (lifecycle 7.4); true
/// when the line `YES` comes in time. False at once when `in` is no terminal.
bool confirm_insecure_start(int in, int out, std::chrono::milliseconds patience);

}  // namespace opensandbox::server
