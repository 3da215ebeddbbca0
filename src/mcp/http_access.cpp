#include "base/identifier.hpp"
#include "mcp/http_transport.hpp"

#include <algorithm>

namespace opensandbox::mcp {

namespace {

constexpr std::string_view kScheme = "bearer ";

/// The host of "host", "host:port", "[::1]:port".
std::string_view host_of(std::string_view authority) {
    if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
    return authority.substr(0, authority.find(':'));
}

std::string_view bearer_of(std::string_view field) {
    if (field.size() <= kScheme.size()) return {};
    if (!http::equal_ignoring_case(field.substr(0, kScheme.size()), kScheme)) return {};
    return field.substr(kScheme.size());
}

}  // namespace

bool is_loopback(std::string_view host) {
    return http::equal_ignoring_case(host, "localhost") || host == "::1" || host == "[::1]" ||
           host.starts_with("127.");
}

bool AccessRules::allows_origin(std::string_view origin) const {
    if (std::ranges::find(origins_, origin) != origins_.end()) return true;
    const auto scheme = origin.find("://");
    if (scheme == std::string_view::npos) return false;
    const std::string_view host = host_of(origin.substr(scheme + 3));
    // A name such as 127.evil.example is none of this machine's.
    const bool numeric = host.find_first_not_of("0123456789.") == std::string_view::npos;
    return is_loopback(host) && (numeric || host.starts_with('[') || !host.starts_with("127."));
}

Status AccessRules::check(const http::RequestHead& request) const {
    if (auto origin = request.fields.get("Origin"); origin && !allows_origin(*origin)) {
        return Error(ErrorCode::permission_denied,
                     "Origin " + std::string(*origin) + " is not allowed (--allow-origin)");
    }
    const auto host = request.fields.get("Host");
    if (is_loopback(host_) && host) {
        const std::string name = "http://" + std::string(*host);
        if (!allows_origin(name) && !allows_origin("https://" + std::string(*host))) {
            return Error(ErrorCode::permission_denied,
                         "Host " + std::string(*host) + " is not this machine");
        }
    }
    if (token_.empty()) return {};
    const auto given = request.fields.get("Authorization");
    if (given && equal_constant_time(bearer_of(*given), token_)) return {};
    return Error(ErrorCode::unauthenticated,
                 given ? "the bearer token is wrong" : "a bearer token is required");
}

}  // namespace opensandbox::mcp
