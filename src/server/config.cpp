#include "server/config.hpp"

#include "base/toml_text.hpp"
#include "server/config_reader.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace opensandbox::server {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

std::string lowered(std::string_view text) {
    std::string lower;
    for (char c : text)
        lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower;
}

/// Sections must be tables, or their keys would be skipped without a word.
void check_sections(ConfigReader& reader) {
    for (std::string_view section :
         {"server", "proxy", "log", "runtime", "docker", "storage", "store", "egress", "ingress",
          "renew_intent", "otel", "secure_runtime", "tenants", "kubernetes", "native"}) {
        const toml::node* found = reader.node(section);
        if (found && !found->is_table())
            reader.fail(section, "must be a table ([" + std::string(section) + "])");
    }
}

void read_server(ConfigReader& reader, Config& config) {
    reader.text("server.host", config.host);
    if (config.host.empty()) config.host = "0.0.0.0";
    if (config.host == "localhost") config.host = "127.0.0.1";
    std::int64_t port = config.port;
    reader.number("server.port", 0, 65535, port);
    config.port = static_cast<std::uint16_t>(port);
    if (reader.node("server.api_key")) {
        config.api_key.emplace();
        reader.text("server.api_key", *config.api_key);
    }
    reader.text("server.eip", config.eip);
    if (reader.node("server.max_sandbox_timeout_seconds")) {
        std::int64_t seconds = 0;
        reader.number("server.max_sandbox_timeout_seconds", 60, INT64_MAX, seconds);
        config.max_sandbox_timeout_seconds = seconds;
    }
    reader.number("server.timeout_keep_alive", 1, 86400, config.timeout_keep_alive);
    reader.number("server.timeout_graceful_shutdown", 0, 86400, config.timeout_graceful_shutdown);
    reader.number("server.limit_concurrency", 0, 1'000'000, config.limit_concurrency);
}

void read_log(ConfigReader& reader, Config& config) {
    std::string level = "INFO";
    reader.text("log.level", level);
    if (auto parsed = parse_log_level(level)) {
        config.log_level = *parsed;
    } else {
        reader.fail("log.level", "must be DEBUG, INFO, WARNING, ERROR or CRITICAL");
    }
    std::string format = "text";
    reader.text("log.format", format);
    if (auto parsed = parse_log_format(format)) {
        config.log_format = *parsed;
    } else {
        reader.fail("log.format", "must be text or json");
    }
    if (reader.flag("log.file_enabled", false)) {
        config.ignored.emplace_back("log.file_enabled: logs go to standard error");
    }
}

bool is_ipv4(std::string_view text) {
    int parts = 0;
    while (true) {
        auto dot = text.find('.');
        std::string_view part = text.substr(0, dot);
        bool digits = !part.empty() && part.size() <= 3 &&
                      std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
        if (!digits || std::stoi(std::string(part)) > 255) return false;
        ++parts;
        if (dot == std::string_view::npos) return parts == 4;
        text.remove_prefix(dot + 1);
    }
}

/// IPv4 network of /8 to /28.
bool is_address_range(std::string_view text) {
    auto slash = text.find('/');
    if (slash == std::string_view::npos || !is_ipv4(text.substr(0, slash))) return false;
    std::string bits(text.substr(slash + 1));
    if (bits.empty() || bits.size() > 2 ||
        bits.find_first_not_of("0123456789") != std::string::npos) {
        return false;
    }
    int width = std::stoi(bits);
    return width >= 8 && width <= 28;
}

void read_native(ConfigReader& reader, Config& config) {
    std::string state_dir;
    reader.text("native.state_dir", state_dir);
    if (!state_dir.empty() && !state_dir.starts_with('/')) {
        reader.fail("native.state_dir", "must be an absolute path");
    }
    config.state_dir = state_dir;
    reader.text("native.address_range", config.address_range);
    if (!is_address_range(config.address_range)) {
        reader.fail("native.address_range",
                    "must be an IPv4 network of /8 to /28, such as 10.77.0.0/16");
    }
    std::int64_t pool = config.pool_size;
    reader.number("native.pool_size", 0, 1000, pool);
    config.pool_size = static_cast<std::uint32_t>(pool);
    reader.text("native.publish_host", config.publish_host);
    if (!is_ipv4(config.publish_host)) {
        reader.fail("native.publish_host", "must be an IPv4 address");
    }
}

/// What this server cannot do must not be configured in vain where it guards something.
void refuse_unsupported(ConfigReader& reader, Config& config) {
    std::string type = "native";
    reader.text("runtime.type", type);
    if (type != "native")
        reader.fail("runtime.type", "must be native; this server has no other runtime");
    std::string secure;
    reader.text("secure_runtime.type", secure);
    if (!secure.empty())
        reader.fail("secure_runtime.type", "must be empty; the native runtime has none");
    std::string ingress = "direct";
    reader.text("ingress.mode", ingress);
    if (ingress != "direct") reader.fail("ingress.mode", "must be direct");
    std::string store = "sqlite";
    reader.text("store.type", store);
    if (store != "sqlite") reader.fail("store.type", "must be sqlite");
    if (reader.node("tenants"))
        reader.fail("tenants", "must be absent; the native runtime has one tenant");
    std::string path;
    reader.text("store.path", path);
    config.store_path = path;
    reader.text("docker.host_ip", config.host_ip);
    if (reader.flag("renew_intent.enabled", false)) {
        config.ignored.emplace_back("renew_intent.enabled: sandboxes are not renewed by traffic");
    }
    if (reader.flag("otel.enabled", false)) {
        config.ignored.emplace_back("otel.enabled: metrics are served at /metrics only");
    }
}

}  // namespace

std::optional<log::Level> parse_log_level(std::string_view text) {
    std::string level = lowered(text);
    if (level == "debug" || level == "trace") return log::Level::debug;
    if (level == "info") return log::Level::info;
    if (level == "warning" || level == "warn") return log::Level::warn;
    if (level == "error" || level == "critical") return log::Level::error;
    return std::nullopt;
}

std::optional<log::Format> parse_log_format(std::string_view text) {
    if (text == "text") return log::Format::text;
    if (text == "json") return log::Format::json;
    return std::nullopt;
}

Result<Config> parse_config(std::string_view text, std::string_view source) {
    if (auto checked = check_toml_text(text, source); !checked) return checked.error();
    try {
        toml::table root = toml::parse(text, source);
        ConfigReader reader(root);
        Config config;
        check_sections(reader);
        read_server(reader, config);
        read_log(reader, config);
        read_native(reader, config);
        refuse_unsupported(reader, config);
        if (!reader.errors().empty()) return Error(ErrorCode::invalid_argument, reader.errors());
        return config;
    } catch (const toml::parse_error& problem) {
        std::string where = std::string(source) + ":" +
                            std::to_string(problem.source().begin.line) + ":" +
                            std::to_string(problem.source().begin.column);
        return Error(ErrorCode::invalid_argument,
                     where + ": " + std::string(problem.description()));
    }
}

Result<Config> load_config(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in)
        return Error(ErrorCode::not_found, "configuration " + file.string() + ": cannot be read");
    std::string text(kMaxFile + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxFile) {
        return Error(ErrorCode::too_large,
                     "configuration " + file.string() + ": larger than 1 MiB");
    }
    return parse_config(text, file.string());
}

std::filesystem::path find_config(const std::string& flag) {
    if (!flag.empty()) return flag;
    if (const char* path = std::getenv("SANDBOX_CONFIG_PATH"); path && *path) return path;
    const char* home = std::getenv("HOME");
    if (!home || !*home) return {};
    std::filesystem::path usual = std::filesystem::path(home) / ".sandbox.toml";
    std::error_code ec;
    return std::filesystem::exists(usual, ec) ? usual : std::filesystem::path();
}

}  // namespace opensandbox::server
