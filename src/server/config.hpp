#pragma once

#include "base/error.hpp"
#include "base/log.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::server {

/// The configuration (lifecycle 7). Every member has its default, so that no file is needed.
struct Config {
    Config() = default;

    // [server]
    std::string host = "127.0.0.1";      ///< numeric address, or "localhost"
    std::uint16_t port = 8080;           ///< 0: the kernel chooses
    std::optional<std::string> api_key;  ///< absent: made at first start; "": no authentication
    std::string eip;  ///< public host of endpoints, with optional scheme and path
    std::optional<std::int64_t> max_sandbox_timeout_seconds;  ///< 60 or more
    std::int64_t timeout_keep_alive = 30;                     ///< seconds
    std::int64_t timeout_graceful_shutdown = 5;               ///< seconds
    std::int64_t limit_concurrency = 1024;                    ///< requests at once; 0: no limit

    // [log]
    log::Level log_level = log::Level::info;
    log::Format log_format = log::Format::text;

    // [docker]
    std::string host_ip;  ///< public host when the server itself runs in a container

    // [store]
    std::filesystem::path store_path;  ///< empty: in the state directory

    // [native]
    std::filesystem::path state_dir;  ///< empty: the default of this user
    std::string address_range = "10.77.0.0/16";
    std::uint32_t pool_size = 8;
    std::string publish_host = "127.0.0.1";

    /// Settings that were understood but have no effect here; logged at start.
    std::vector<std::string> ignored;
};

/// Parses TOML. Unknown keys are ignored; the error names every `section.key` with the rule it
/// breaks. `source` stands in front of syntax errors.
Result<Config> parse_config(std::string_view toml, std::string_view source);

/// Reads a file of at most 1 MiB.
Result<Config> load_config(const std::filesystem::path& file);

/// `--config`, else SANDBOX_CONFIG_PATH, else ~/.sandbox.toml when it exists, else empty.
std::filesystem::path find_config(const std::string& flag);

/// DEBUG, INFO, WARNING, WARN, ERROR, CRITICAL; case ignored.
std::optional<log::Level> parse_log_level(std::string_view text);
/// text, json.
std::optional<log::Format> parse_log_format(std::string_view text);

/// The commented example that `init-config` writes.
std::string_view example_config();

}  // namespace opensandbox::server
