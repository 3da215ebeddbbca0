#include "base/state_directory.hpp"
#include "sdk/config_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>

namespace opensandbox::sdk {

namespace {

Error bad_value(std::string_view name, std::string_view value, std::string_view accepted) {
    return {ErrorCode::invalid_argument, std::string(name) + ": '" + std::string(value) +
                                             "' is not accepted; use " + std::string(accepted)};
}

std::optional<bool> parse_boolean(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::array kTrue{"1", "true", "yes", "on", "t", "y"};
    constexpr std::array kFalse{"0", "false", "no", "off", "f", "n"};
    if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
    if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
    return std::nullopt;
}

std::optional<std::string> read_local_key() {
    // Root's server keeps its key where only root reads it; a user's own server in the home.
    const char* home = std::getenv("HOME");
    std::vector<std::filesystem::path> directories{default_state_directory()};
    if (home) directories.push_back(std::filesystem::path(home) / ".opensandbox");
    directories.emplace_back("/var/lib/opensandbox");
    for (const auto& directory : directories) {
        std::ifstream in(api_key_file(directory));
        std::string key;
        if (in >> key) return key;
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
    const char* value = std::getenv(name);
    if (!value || !*value) return std::nullopt;
    return std::string(value);
}

bool is_loopback_domain(std::string_view domain) {
    if (auto scheme = domain.find("://"); scheme != std::string_view::npos) {
        domain.remove_prefix(scheme + 3);
    }
    std::string_view authority = domain.substr(0, domain.find('/'));
    if (authority.starts_with("[")) return authority.starts_with("[::1]");
    std::string_view host = authority.substr(0, authority.find(':'));
    if (host == "localhost") return true;
    // 127.0.0.0/8 in full, not a name that merely starts with 127.
    return host.starts_with("127.") &&
           host.find_first_not_of("0123456789.") == std::string_view::npos;
}

Result<ConnectionConfig> resolve_connection(
    const ConnectionOverrides& overrides, const Environment& environment, const ConfigFile& file,
    const std::function<std::optional<std::string>()>& local_key) {
    ConnectionConfig config;
    auto pick = [&](const std::optional<std::string>& given, const char* variable,
                    const std::optional<std::string>& kept, std::string& into) {
        if (given) {
            into = *given;
        } else if (auto value = environment(variable)) {
            into = *value;
        } else if (kept) {
            into = *kept;
        }
    };
    pick(overrides.domain, "OPEN_SANDBOX_DOMAIN", file.domain, config.domain);
    pick(overrides.protocol, "OPEN_SANDBOX_PROTOCOL", file.protocol, config.protocol);
    pick(overrides.api_key, "OPEN_SANDBOX_API_KEY", file.api_key, config.api_key);
    if (config.protocol != "http" && config.protocol != "https") {
        return bad_value("protocol", config.protocol, "http or https");
    }

    if (overrides.request_timeout) {
        config.request_timeout = *overrides.request_timeout;
    } else if (auto text = environment("OPEN_SANDBOX_REQUEST_TIMEOUT")) {
        long seconds = 0;
        auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), seconds);
        if (failed != std::errc() || end != text->data() + text->size() || seconds < 0) {
            return bad_value("OPEN_SANDBOX_REQUEST_TIMEOUT", *text, "a number of seconds");
        }
        config.request_timeout = std::chrono::seconds(seconds);
    } else if (file.request_timeout) {
        if (*file.request_timeout < 0) {
            return bad_value("connection.request_timeout", std::to_string(*file.request_timeout),
                             "a number of seconds");
        }
        config.request_timeout = std::chrono::seconds(*file.request_timeout);
    }

    if (overrides.use_server_proxy) {
        config.use_server_proxy = *overrides.use_server_proxy;
    } else if (auto text = environment("OPEN_SANDBOX_USE_SERVER_PROXY")) {
        auto value = parse_boolean(*text);
        if (!value) return bad_value("OPEN_SANDBOX_USE_SERVER_PROXY", *text, "true or false");
        config.use_server_proxy = *value;
    } else if (file.use_server_proxy) {
        config.use_server_proxy = *file.use_server_proxy;
    }

    // The key never leaves this machine: a remote server must be given one by hand.
    if (config.api_key.empty() && is_loopback_domain(config.domain)) {
        config.api_key = local_key().value_or(std::string());
    }
    return config;
}

Result<ConnectionConfig> ConnectionConfig::discover(const ConnectionOverrides& overrides) {
    auto file = load_config_file(overrides.config_file.value_or(default_config_path()));
    if (!file) {
        const bool optional = !overrides.config_file;
        if (!optional || file.error().code() != ErrorCode::not_found) return file.error();
        return resolve_connection(overrides, process_environment, ConfigFile(), read_local_key);
    }
    return resolve_connection(overrides, process_environment, *file, read_local_key);
}

}  // namespace opensandbox::sdk
