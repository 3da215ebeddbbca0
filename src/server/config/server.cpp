#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

void read_trusted_proxies(ConfigReader& reader, Config& config) {
    constexpr std::string_view key = "server.trusted_proxies";
    std::vector<std::string> texts;
    reader.texts(key, texts);
    for (const std::string& text : texts) {
        auto block = net::AddressBlock::parse(text);
        if (!block) {
            return reader.fail(key, "must be a list of addresses and networks; \"" + text + "\" " +
                                        block.error().message());
        }
        config.trusted_proxies.push_back(*block);
    }
}

}  // namespace

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
    reader.number("server.limit_concurrency_without_key", 0, 1'000'000, config.limit_without_key);
    reader.number("server.limit_connections", 8, 1'000'000, config.limit_connections);
    reader.number("server.timeout_send", 1, 86400, config.timeout_send);
    read_trusted_proxies(reader, config);
    config.resolve_internal = reader.flag("proxy.resolve_internal", true);
    reader.number("proxy.limit_concurrency", 0, 1'000'000, config.limit_proxied);
    reader.number("proxy.limit_per_sandbox", 0, 1'000'000, config.limit_per_sandbox);
}

}  // namespace opensandbox::server
