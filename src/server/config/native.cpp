#include "server/config/sections.hpp"

#include <algorithm>

namespace opensandbox::server {

bool is_ipv4(std::string_view text) {
    int parts = 0;
    while (true) {
        auto dot = text.find('.');
        std::string_view part = text.substr(0, dot);
        bool digits = !part.empty() && part.size() <= 3 &&
                      std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
        if (!digits || std::stoi(std::string(part)) > 255) return false;
        ++parts;
        if (dot == std::string_view::npos) return parts == 4;
        text.remove_prefix(dot + 1);
    }
}

bool is_address_range(std::string_view text) {
    auto slash = text.find('/');
    if (slash == std::string_view::npos || !is_ipv4(text.substr(0, slash))) return false;
    std::string bits(text.substr(slash + 1));
    if (bits.empty() || bits.size() > 2 ||
        bits.find_first_not_of("0123456789") != std::string::npos) {
        return false;
    }
    int width = std::stoi(bits);
    return width >= 8 && width <= 28;
}

void read_native(ConfigReader& reader, Config& config) {
    std::string state_dir;
    reader.text("native.state_dir", state_dir);
    if (!state_dir.empty() && !state_dir.starts_with('/')) {
        reader.fail("native.state_dir", "must be an absolute path");
    }
    config.state_dir = state_dir;
    reader.text("native.address_range", config.address_range);
    if (!is_address_range(config.address_range)) {
        reader.fail("native.address_range",
                    "must be an IPv4 network of /8 to /28, such as 10.77.0.0/16");
    }
    std::int64_t pool = config.pool_size;
    reader.number("native.pool_size", 0, 1000, pool);
    config.pool_size = static_cast<std::uint32_t>(pool);
    reader.text("native.publish_host", config.publish_host);
    if (!is_ipv4(config.publish_host)) {
        reader.fail("native.publish_host", "must be an IPv4 address");
    }
}

}  // namespace opensandbox::server
