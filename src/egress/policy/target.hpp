#pragma once

#include "egress/policy/port_set.hpp"
#include "net/address_block.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// Whom a rule speaks of (network contract 1.2):
///
///     target = ( name | "*." name | IPv4 [ "/" bits ] | "[" IPv6 [ "/" bits ] "]" )
///              [ ":" port [ "-" port ] [ "/tcp" | "/udp" ] ]
///            | IPv6 [ "/" bits ]
///
/// as in `api.example.com:443`, `*.example.com`, `10.0.0.0/8:5432/tcp`, `[fd00::1]:443`,
/// `fd00::/8`. Ports (1 to 65535) are an addition to the contract. An IPv6 address without brackets
/// has no port: all its digits belong to it.
///
/// A name has labels of 1 to 63 ASCII letters, digits, hyphens and underscores (service names and
/// container names have them) and at most 253 characters; one dot at its end is dropped. Others
/// are written in their ASCII form ("xn--..."). A name whose last label is a number is none: it is
/// an address that was written wrongly.
class Target {
  public:
    enum class Kind : std::uint8_t { address, name, wildcard };

    /// `invalid_argument` says what is wrong, without saying where. White space around is dropped.
    static Result<Target> parse(std::string_view text);

    /// TCP ports of an address or network.
    static Target of_tcp_ports(const net::AddressBlock& block, PortRange ports);

    [[nodiscard]] Kind kind() const { return kind_; }
    /// Of a name or a wildcard: lower case, without "*." and port.
    [[nodiscard]] const std::string& name() const { return name_; }
    /// Of an address: the address or network.
    [[nodiscard]] const net::AddressBlock& block() const { return *block_; }
    [[nodiscard]] const Scope& scope() const { return scope_; }
    /// As it was written, without white space and without the name's last dot.
    [[nodiscard]] const std::string& text() const { return text_; }
    /// text() in lower case: two targets with the same key are one (PATCH, DELETE).
    [[nodiscard]] std::string key() const;

  private:
    Target() = default;

    Kind kind_ = Kind::name;
    std::string name_;
    std::optional<net::AddressBlock> block_;
    Scope scope_;
    std::string text_;
};

/// ASCII letters in lower case, all else as it is.
std::string lower_case(std::string_view text);

/// Checks a host name by the rules above and returns it in lower case, without a dot at its end.
Result<std::string> parse_host_name(std::string_view text);

}  // namespace opensandbox::egress
