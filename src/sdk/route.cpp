#include "sdk/route.hpp"

#include <charconv>

namespace opensandbox::sdk {

namespace {

constexpr std::string_view kSchemeEnd = "://";

Error malformed(std::string_view text, std::string_view why) {
    return {ErrorCode::invalid_argument,
            "'" + std::string(text) + "' is no server address: " + std::string(why) +
                "; accepted: HOST, HOST:PORT, " + "[IPV6]:PORT, each with /PATH behind it"};
}

bool is_host_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == ':' || c == '%';
}

}  // namespace

Result<Route> parse_route(std::string_view text, std::string_view protocol) {
    const std::string_view whole = text;
    if (auto end = text.find(kSchemeEnd); end != std::string_view::npos) {
        if (text.substr(0, end) != protocol) {
            return malformed(whole,
                             "its scheme is not the protocol '" + std::string(protocol) + "'");
        }
        text.remove_prefix(end + kSchemeEnd.size());
    }
    Route route;
    std::string_view authority = text.substr(0, text.find('/'));
    std::string_view path = text.substr(authority.size());
    while (path.ends_with('/'))
        path.remove_suffix(1);
    for (char c : path) {
        if (c <= ' ' || c == '?' || c == '#')
            return malformed(whole, "its path is not a plain path");
    }

    std::string_view host = authority;
    std::string_view port;
    bool has_port = false;
    if (authority.starts_with('[')) {
        auto close = authority.find(']');
        if (close == std::string_view::npos) return malformed(whole, "']' is missing");
        host = authority.substr(1, close - 1);
        std::string_view rest = authority.substr(close + 1);
        if (!rest.empty() && rest[0] != ':') return malformed(whole, "text after ']'");
        has_port = !rest.empty();
        if (has_port) port = rest.substr(1);
    } else if (auto colon = authority.find(':'); colon != std::string_view::npos) {
        host = authority.substr(0, colon);
        port = authority.substr(colon + 1);
        has_port = true;
    }
    if (host.empty()) return malformed(whole, "the host is missing");
    for (char c : host) {
        if (!is_host_character(c))
            return malformed(whole, "the host has a character that no host has");
    }
    unsigned number = protocol == "https" ? 443 : 80;
    if (has_port) {
        auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
        if (failed != std::errc() || end != port.data() + port.size() || number < 1 ||
            number > 65535) {
            return malformed(whole, "the port is not a number from 1 to 65535");
        }
    }
    route.origin = http::Origin(std::string(host), static_cast<std::uint16_t>(number));
    route.host = std::string(authority);
    route.prefix = std::string(path);
    return route;
}

std::string encode_query(const std::vector<std::pair<std::string, std::string>>& items) {
    std::string query;
    for (const auto& [name, value] : items) {
        if (!query.empty()) query += '&';
        query += http::percent_encode(name) + "=" + http::percent_encode(value);
    }
    return query;
}

}  // namespace opensandbox::sdk
