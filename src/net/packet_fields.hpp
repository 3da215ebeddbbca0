#pragma once

#include <cstdint>

/// Where the fields that rules look at stand in their headers, in bytes.
namespace opensandbox::net::nft {

inline constexpr std::uint32_t kIpv4SourceOffset = 12;
inline constexpr std::uint32_t kIpv4DestinationOffset = 16;
inline constexpr std::uint32_t kIpv6SourceOffset = 8;
inline constexpr std::uint32_t kIpv6DestinationOffset = 24;
/// In the headers of TCP and of UDP.
inline constexpr std::uint32_t kDestinationPortOffset = 2;

}  // namespace opensandbox::net::nft
