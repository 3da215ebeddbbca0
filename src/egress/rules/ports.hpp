#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>

namespace opensandbox::egress {

inline constexpr std::uint16_t dns_port = 53;
inline constexpr std::uint16_t https_port = 443;
inline constexpr std::uint16_t dns_over_tls_port = 853;
/// The protocols that have ports, as far as rules speak of them.
inline constexpr std::array<std::uint8_t, 2> with_ports{IPPROTO_TCP, IPPROTO_UDP};

}  // namespace opensandbox::egress
