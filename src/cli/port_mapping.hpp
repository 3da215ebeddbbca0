#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace opensandbox::cli {

struct PortMapping {
    std::uint16_t local = 0;  ///< 0: any that is free
    std::uint16_t remote = 0;
};

/// "8000" (the same on both sides), "9000:80", ":80"; empty when malformed. Pure.
std::optional<PortMapping> parse_port_mapping(std::string_view text);

}  // namespace opensandbox::cli
