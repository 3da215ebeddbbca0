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

}  // namespace

bool HostPattern::matches(std::string_view host) const {
    return wildcard ? is_below(host, name) : host == name;
}

PathPattern::PathPattern(std::string_view text) : prefix(text.ends_with('*')), path(text) {
    if (prefix) path.pop_back();
}

bool PathPattern::matches(std::string_view raw_path) const {
    return prefix ? raw_path.starts_with(path) : raw_path == path;
}

bool BindingMatch::allows(std::string_view scheme, std::uint16_t port,
                          std::string_view method) const {
    return contains(schemes, scheme) && contains(ports, port) && contains(methods, method);
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
