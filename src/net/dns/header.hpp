#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// The second word of a DNS message's header (RFC 1035 4.1.1, RFC 4035 3.2).
namespace opensandbox::net::dns {

inline constexpr std::uint16_t kFlagResponse = 0x8000;
inline constexpr std::uint16_t kOpcodeMask = 0x7800;
inline constexpr std::uint16_t kFlagAuthoritative = 0x0400;
inline constexpr std::uint16_t kFlagTruncated = 0x0200;
inline constexpr std::uint16_t kFlagRecursionDesired = 0x0100;
inline constexpr std::uint16_t kFlagRecursionAvailable = 0x0080;
inline constexpr std::uint16_t kFlagAuthentic = 0x0020;
inline constexpr std::uint16_t kFlagCheckingDisabled = 0x0010;
inline constexpr std::uint16_t kCodeMask = 0x000f;

/// Of a message that cannot be read.
inline Error malformed(std::string_view what) {
    return {ErrorCode::protocol, "dns message: " + std::string(what)};
}

}  // namespace opensandbox::net::dns
