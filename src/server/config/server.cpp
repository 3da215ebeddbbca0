#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

constexpr std::int64_t kLongestTimeout = 86'400;
constexpr std::int64_t kMostAtOnce = 1'000'000;

void read_trusted_proxies(ConfigReader& reader, const Key&, std::string_view path,
                          std::vector<net::AddressBlock>& into) {
    std::vector<std::string> given;
    reader.texts(path, given);
    for (const std::string& proxy : given) {
        auto block = net::AddressBlock::parse(proxy);
        if (!block) {
            return reader.fail(path, "must be a list of addresses and networks; \"" + proxy +
                                         "\" " + block.error().message());
        }
        into.push_back(*block);
    }
}

void read_host(ConfigReader&, Config& config) {
    if (config.host.empty()) config.host = "0.0.0.0";
    if (config.host == "localhost") config.host = "127.0.0.1";
}

constexpr std::array kServerKeys{
    keys::text<&Config::host>(
        "host",
        "A numeric address, or \"localhost\". Beyond loopback the server starts only with an API "
        "key."),
    keys::number<&Config::port>(
        "port", 0, 65535,
        "0 lets the kernel choose; the port is printed when the server is ready."),
    keys::text<&Config::api_key>(
        "api_key",
        "Clients send it as OPEN-SANDBOX-API-KEY. Without this line a key is made at the first "
        "start and kept in <state_dir>/api-key; \"\" turns authentication off. The environment "
        "variable OPENSANDBOX_SERVER_API_KEY wins over this line.")
        .like("\"change-me\""),
    keys::text<&Config::eip>(
        "eip",
        "Public host (and port, and path) of sandbox endpoints, when it differs from `host`.")
        .like("\"sandbox.example.com\""),
    keys::number<&Config::max_sandbox_timeout_seconds>(
        "max_sandbox_timeout_seconds", 60, INT64_MAX,
        "Longest `timeout` of a create request, in seconds (60 or more); none by default.")
        .like("86400"),
    keys::number<&Config::timeout_keep_alive>("timeout_keep_alive", 1, kLongestTimeout,
                                              "Seconds an idle connection is kept."),
    keys::number<&Config::timeout_graceful_shutdown>(
        "timeout_graceful_shutdown", 0, kLongestTimeout,
        "Seconds that requests in flight get to finish when the server stops; sandboxes live on."),
    keys::number<&Config::limit_concurrency>(
        "limit_concurrency", 0, kMostAtOnce,
        "Requests with a key served at once, apart from those to sandboxes; more are answered 503. "
        "0: no limit."),
    keys::number<&Config::limit_without_key>(
        "limit_concurrency_without_key", 0, kMostAtOnce,
        "The same for requests to sandboxes that carry no key, only an id. All limits but the "
        "first end where the descriptors of the process do: these at an eighth of them. /health is "
        "never refused."),
    keys::number<&Config::limit_connections>(
        "limit_connections", 8, kMostAtOnce,
        "Connections at once, at most half of the descriptors. Where there is no more room the "
        "ones that wait for a request give way, the longest waiting first."),
    keys::number<&Config::timeout_send>(
        "timeout_send", 1, kLongestTimeout,
        "Seconds after which a client without a key is cut that takes nothing of its answer."),
    keys::value<read_trusted_proxies, &Config::trusted_proxies>(
        "trusted_proxies",
        "Addresses and networks of the proxies in front of this server, such as one that ends TLS: "
        "what they say in X-Forwarded-For, -Proto and -Host of a request is believed and told to "
        "the sandbox. What others say there is dropped."),
};

constexpr std::array kProxyKeys{
    keys::flag<&Config::resolve_internal>(
        "resolve_internal",
        "Requests through the server go to a sandbox's own address where it has one. false: "
        "through the ports that are published on the host."),
    keys::number<&Config::limit_proxied>(
        "limit_concurrency", 0, kMostAtOnce,
        "Requests to sandboxes with a key (the server's, or the sandbox's token) at once. 0: no "
        "limit."),
    keys::number<&Config::limit_per_sandbox>(
        "limit_per_sandbox", 0, kMostAtOnce,
        "Requests to one sandbox at once, counted apart with and without a key. 0: no limit."),
};

}  // namespace

constinit const Section kServerSection{.name = "server", .keys = kServerKeys, .read = read_host};
constinit const Section kProxySection{.name = "proxy", .keys = kProxyKeys};

}  // namespace opensandbox::server
