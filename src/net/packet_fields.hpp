#pragma once

#include <cstdint>

/// Where the fields that rules look at stand in their headers, in bytes.
namespace opensandbox::net::nft {

inline constexpr std::uint32_t ipv4_source_offset = 12;
inline constexpr std::uint32_t ipv4_destination_offset = 16;
inline constexpr std::uint32_t ipv6_source_offset = 8;
inline constexpr std::uint32_t ipv6_destination_offset = 24;
/// In the headers of TCP and of UDP.
inline constexpr std::uint32_t destination_port_offset = 2;

}  // namespace opensandbox::net::nft
