#include "registry/wire.hpp"

#include "http/url.hpp"
#include "image/budget.hpp"

#include <algorithm>

namespace opensandbox::registry {
namespace {

http::ClientOptions client_options(const RegistryOptions& options) {
    http::ClientOptions client;
    client.connect_timeout = options.connect_timeout;
    client.head_timeout = 2 * options.stall_timeout;  // a registry checks what it was sent
    return client;
}

bool is_named(const std::vector<std::string>& names, const std::string& host, std::uint16_t port) {
    return std::ranges::any_of(names, [&](const std::string& name) {
        auto named = locate_registry(name);
        return named && named->host == host && (named->port == 0 || named->port == port);
    });
}

}  // namespace

Wire::Wire(asio::any_io_executor executor, const RegistryOptions& options)
    : executor_(executor),
      options_(options),
      system_(std::make_shared<net::TlsClient>()),
      client_(executor, client_options(options)) {
    if (options.ca_file.empty()) return;
    net::TlsSettings settings;
    settings.ca_file = options.ca_file.string();
    private_ = std::make_shared<net::TlsClient>(std::move(settings));
}

std::shared_ptr<net::TlsClient> Wire::trust(const std::string& host, std::uint16_t port) const {
    bool own = private_ && (options_.ca_hosts.empty() || is_named(options_.ca_hosts, host, port));
    return own ? private_ : system_;
}

http::Origin Wire::origin(const Location& location, bool secured) const {
    std::uint16_t port = location.port != 0 ? location.port : secured ? 443 : 80;
    http::Origin origin(location.host, port);
    if (secured) origin.tls = trust(location.host, port);
    return origin;
}

bool Wire::is_plain(const Location& location) const {
    std::uint16_t port = location.port != 0 ? location.port : 80;
    return is_named(options_.plain_http_hosts, location.host, port);
}

Result<Target> Wire::resolve(std::string_view url, const Target& from) const {
    url = url.substr(0, url.find('#'));
    // It becomes a part of the request's first line.
    if (std::ranges::any_of(url, [](unsigned char c) { return c <= ' ' || c == 0x7f; })) {
        return Error(ErrorCode::bad_gateway, "the registry names the address " +
                                                 image::in_quotes(url) +
                                                 ", which holds spaces or control characters");
    }
    Target target;
    if (url.starts_with('/') && !url.starts_with("//")) {
        target.origin = from.origin;
        target.target = url;
        return target;
    }
    std::size_t query = url.find('?');
    auto parsed = http::parse_url(url.substr(0, query));
    if (!parsed) {
        return Error(ErrorCode::bad_gateway, "the registry names the address " +
                                                 image::in_quotes(url.substr(0, query)) +
                                                 ", which is none");
    }
    target.origin = std::move(parsed->origin);
    target.target = parsed->path.empty() ? "/" : std::move(parsed->path);
    if (query != std::string_view::npos) target.target += url.substr(query);
    if (target.origin.tls) {
        target.origin.tls = trust(target.origin.host, target.origin.port);
        return target;
    }
    // Some registries behind a TLS proxy name themselves without it.
    if (from.origin.tls && target.origin.host == from.origin.host &&
        (target.origin.port == from.origin.port || target.origin.port == 80)) {
        target.origin = from.origin;
        return target;
    }
    bool may = !from.origin.tls || is_loopback(target.origin.host) ||
               is_named(options_.plain_http_hosts, target.origin.host, target.origin.port);
    if (may) return target;
    return Error(ErrorCode::bad_gateway,
                 "the registry sends to http://" + target.origin.host +
                     ", which is not encrypted and not among registry.plain_http_hosts");
}

}  // namespace opensandbox::registry
