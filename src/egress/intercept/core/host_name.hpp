#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// A host as requests name it.
struct Authority {
    std::string host;  ///< lower case, without a final dot and without brackets
    bool is_address = false;
    std::optional<std::uint16_t> port;
};

/// A DNS name in the form that all comparisons use: lower case, no final dot. Empty when it is none
/// (RFC 1035 lengths; letters, digits, `-` and `_`): an address is no name.
std::optional<std::string> normal_host_name(std::string_view text);

/// `host`, `host:port`, `1.2.3.4`, `[::1]:port`; empty when it is anything else, user names
/// included.
std::optional<Authority> parse_authority(std::string_view text);

/// As a URL writes it: brackets around an IPv6 address, `:port`.
std::string host_and_port(std::string_view host, std::uint16_t port);

}  // namespace opensandbox::egress
