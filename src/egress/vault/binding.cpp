#include "egress/vault/binding.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

/// Whether `host` is below `suffix`.
bool is_below(std::string_view host, std::string_view suffix) {
    return host.size() > suffix.size() + 1 && host.ends_with(suffix) &&
           host[host.size() - suffix.size() - 1] == '.';
}

bool contains(const auto& list, const auto& item) {
    return std::ranges::find(list, item) != list.end();
}

bool intersect(const auto& a, const auto& b) {
    return std::ranges::any_of(a, [&](const auto& item) { return contains(b, item); });
}

bool any_collide(const auto& a, const auto& b) {
    return std::ranges::any_of(a, [&](const auto& x) {
        return std::ranges::any_of(b, [&](const auto& y) { return x.collides(y); });
    });
}

}  // namespace

bool HostPattern::matches(std::string_view host) const {
    return wildcard ? is_below(host, name) : host == name;
}

bool HostPattern::collides(const HostPattern& other) const {
    if (wildcard != other.wildcard) return false;
    if (name == other.name) return true;
    return wildcard && (is_below(name, other.name) || is_below(other.name, name));
}

PathPattern::PathPattern(std::string_view text) : prefix(text.ends_with('*')), path(text) {
    if (prefix) path.pop_back();
}

bool PathPattern::matches(std::string_view raw_path) const {
    return prefix ? raw_path.starts_with(path) : raw_path == path;
}

bool PathPattern::collides(const PathPattern& other) const {
    if (prefix && other.prefix) {
        return path.starts_with(other.path) || other.path.starts_with(path);
    }
    return prefix ? other.path.starts_with(path) : other.matches(path);
}

bool BindingMatch::allows(std::string_view scheme, std::uint16_t port,
                          std::string_view method) const {
    return contains(schemes, scheme) && contains(ports, port) && contains(methods, method);
}

bool BindingMatch::collides(const BindingMatch& other) const {
    return any_collide(hosts, other.hosts) && intersect(schemes, other.schemes) &&
           intersect(ports, other.ports) && intersect(methods, other.methods) &&
           any_collide(paths, other.paths);
}

std::string_view to_string(AuthType type) {
    switch (type) {
        case AuthType::bearer: return "bearer";
        case AuthType::basic: return "basic";
        case AuthType::api_key: return "apiKey";
        case AuthType::custom_headers: return "customHeaders";
        case AuthType::passthrough: return "passthrough";
    }
    return "bearer";
}

}  // namespace opensandbox::egress
