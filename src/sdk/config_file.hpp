#pragma once

#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace opensandbox::sdk {

/// ~/.opensandbox/config.toml (clients 1). Unknown keys are ignored.
struct ConfigFile {
    std::optional<std::string> api_key;
    std::optional<std::string> domain;
    std::optional<std::string> protocol;
    std::optional<std::int64_t> request_timeout;  ///< seconds
    std::optional<bool> use_server_proxy;
    std::optional<bool> color;
    std::optional<std::string> default_image;
    std::optional<std::string> default_timeout;
};

/// $HOME/.opensandbox/config.toml.
std::filesystem::path default_config_path();

/// `not_found` when there is no such file, `invalid_argument` naming line or key when it is
/// malformed.
Result<ConfigFile> load_config_file(const std::filesystem::path& path);
Result<ConfigFile> parse_config_file(std::string_view text, std::string_view path);

/// Looks up an environment variable; empty when unset.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

/// The values of ConnectionConfig::discover(), from sources that are given. `local_key` supplies
/// the key of this machine's server and is asked only for loopback domains.
Result<ConnectionConfig> resolve_connection(
    const ConnectionOverrides& overrides, const Environment& environment, const ConfigFile& file,
    const std::function<std::optional<std::string>()>& local_key);

/// Whether an address names this machine's loopback: "localhost", 127.x.x.x or [::1], any port.
bool is_loopback_domain(std::string_view domain);

}  // namespace opensandbox::sdk
