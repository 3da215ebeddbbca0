#include "agent/code/jupyter/server.hpp"

#include <charconv>

namespace opensandbox::agent::jupyter {
namespace {

Error wrong(std::string_view url, std::string_view why) {
    return {ErrorCode::invalid_argument,
            "Jupyter host " + std::string(url) + ": " + std::string(why)};
}

/// Cuts the port off a host; false when it is none.
bool take_port(std::string_view& host, std::uint16_t& port) {
    std::size_t colon = host.rfind(':');
    std::size_t bracket = host.rfind(']');
    if (colon == std::string_view::npos) return true;
    if (bracket != std::string_view::npos && colon < bracket) return true;
    std::string_view digits = host.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return false;
    host = host.substr(0, colon);
    return true;
}

}  // namespace

Result<Address> parse_address(std::string_view url) {
    constexpr std::string_view kHttp = "http://";
    if (url.starts_with("https://")) {
        return Error(ErrorCode::unsupported, "Jupyter host " + std::string(url) +
                                                 ": this agent speaks no TLS, use http://");
    }
    if (!url.starts_with(kHttp)) return wrong(url, "must begin with http://");
    std::string_view rest = url.substr(kHttp.size());
    std::size_t slash = rest.find_first_of("/?#");
    std::string_view host = rest.substr(0, slash);
    std::string_view base = slash == std::string_view::npos ? "" : rest.substr(slash);
    if (base.find_first_of("?# \r\n") != std::string_view::npos) return wrong(url, "has a query");
    while (base.ends_with('/'))
        base.remove_suffix(1);
    Address address;
    address.origin.port = 80;
    if (!take_port(host, address.origin.port)) return wrong(url, "has no valid port");
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host.empty() || host.find_first_of("@ \r\n") != std::string_view::npos) {
        return wrong(url, "has no valid host");
    }
    address.origin.host = host;
    address.base = base;
    return address;
}

}  // namespace opensandbox::agent::jupyter
