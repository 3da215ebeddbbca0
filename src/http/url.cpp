#include "http/url.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::http {
namespace {

Error wrong(std::string_view url, std::string_view why) {
    return {ErrorCode::invalid_argument, std::string(url) + ": " + std::string(why)};
}

bool plain(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        auto byte = static_cast<unsigned char>(c);
        return byte > ' ' && byte != 0x7f && c != '?' && c != '#' && c != '@';
    });
}

/// Cuts a port off the host; false when what follows the colon is none.
bool take_port(std::string_view& host, Url& url) {
    std::size_t colon = host.rfind(':');
    std::size_t bracket = host.rfind(']');
    if (colon == std::string_view::npos) return true;
    if (bracket != std::string_view::npos && colon < bracket) return true;
    std::string_view digits = host.substr(colon + 1);
    auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), url.origin.port);
    if (error != std::errc() || end != digits.data() + digits.size()) return false;
    if (url.origin.port == 0) return false;
    host = host.substr(0, colon);
    return true;
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
    constexpr std::string_view kPlain = "http://";
    constexpr std::string_view kSecured = "https://";
    bool secured = text.starts_with(kSecured);
    if (!secured && !text.starts_with(kPlain)) {
        return wrong(text, "must begin with http:// or https://");
    }
    std::string_view rest = text.substr((secured ? kSecured : kPlain).size());
    if (!plain(rest)) return wrong(text, "must be http://host:port/path and no more");
    std::size_t slash = rest.find('/');
    std::string_view host = rest.substr(0, slash);
    Url url;
    if (slash != std::string_view::npos) url.path = rest.substr(slash);
    url.origin.port = secured ? 443 : 80;
    if (!take_port(host, url)) return wrong(text, "has no valid port");
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host.empty()) return wrong(text, "has no host");
    url.origin.host = host;
    if (secured) url.origin.tls = std::make_shared<net::TlsClient>();
    return url;
}

}  // namespace opensandbox::http
