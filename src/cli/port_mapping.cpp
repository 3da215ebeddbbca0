#include "cli/port_mapping.hpp"

#include <charconv>

namespace opensandbox::cli {

namespace {

std::optional<std::uint16_t> port_of(std::string_view text) {
    std::uint16_t port = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (failed != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
    return port;
}

}  // namespace

std::optional<PortMapping> parse_port_mapping(std::string_view text) {
    const auto colon = text.find(':');
    PortMapping mapping;
    auto remote = port_of(colon == std::string_view::npos ? text : text.substr(colon + 1));
    if (!remote) return std::nullopt;
    mapping.local = mapping.remote = *remote;
    if (colon == std::string_view::npos) return mapping;
    mapping.local = 0;
    if (colon == 0) return mapping;
    auto local = port_of(text.substr(0, colon));
    if (!local) return std::nullopt;
    mapping.local = *local;
    return mapping;
}

}  // namespace opensandbox::cli
