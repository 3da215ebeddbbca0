#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>

namespace opensandbox::egress {

inline constexpr std::uint16_t kDnsPort = 53;
inline constexpr std::uint16_t kHttpsPort = 443;
inline constexpr std::uint16_t kDnsOverTlsPort = 853;
/// The protocols that have ports, as far as rules speak of them.
inline constexpr std::array<std::uint8_t, 2> kWithPorts{IPPROTO_TCP, IPPROTO_UDP};

}  // namespace opensandbox::egress
