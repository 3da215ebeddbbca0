#pragma once

#include "egress/settings/environment.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The forms that values of the environment have. All pure; empty means malformed.
namespace opensandbox::egress {

std::string_view trim_value(std::string_view text);
/// The items of a comma list without white space around them; empty ones are left out.
std::vector<std::string> split_list(std::string_view text);

/// 1, true, yes, y, on, in any case.
bool is_truthy(std::string_view text);
/// A decimal number from `first` to `last`.
std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t first,
                                          std::uint32_t last);
/// An IPv4 or IPv6 address without scope and brackets.
std::optional<net::Address> parse_literal(std::string_view text);
/// Go's host:port with a literal address, localhost, or no host.
std::optional<ListenAddress> parse_listen_address(std::string_view text);
/// "ip", "ip:port", "[v6]", "[v6]:port", "v6"; port 53 unless it says.
std::optional<DnsUpstream> parse_dns_upstream(std::string_view text);
/// "dns" and "dns+nft" in any case and order: whether nft is among them.
std::optional<bool> parse_mode(std::string_view text);
/// The number of a type of DNS by its name (A, HTTPS, TYPE65); letters in any case.
std::optional<std::uint16_t> parse_query_type(std::string_view name);
std::optional<log::Level> parse_log_level(std::string_view text);
/// "k=v,k=v"; items without a key or a value are left out.
std::vector<std::pair<std::string, std::string>> parse_attributes(std::string_view text);

}  // namespace opensandbox::egress
