#include "model/resource_quantity.hpp"
#include "server/config/sections.hpp"

#include <algorithm>

namespace opensandbox::server {
namespace {

// As in lifecycle/admission_limits.cpp, for the same limits.
constexpr std::int64_t kLeastPids = 16;
constexpr std::int64_t kMostPids = 4'194'304;
constexpr std::int64_t kLeastFiles = 256;
constexpr std::int64_t kMostFiles = 1'048'576;
constexpr std::uint64_t kLeastLayer = 16ULL << 20;
constexpr std::uint64_t kMostLayer = 1ULL << 44;
constexpr std::uint64_t kLeastRate = 8192;
constexpr std::uint64_t kMostRate = 1ULL << 35;

void read_limit(ConfigReader& reader, std::string_view key, std::uint64_t least, std::uint64_t most,
                std::string_view rule, std::uint64_t& into) {
    std::string text;
    reader.text(key, text);
    if (text.empty()) return;
    const auto value = model::parse_memory(text);
    if (value && *value >= least && *value <= most) {
        into = *value;
    } else {
        reader.fail(key, "must be " + std::string(rule));
    }
}

}  // namespace

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
    reader.number("native.pids", kLeastPids, kMostPids, config.native_pids);
    reader.number("native.open_files", kLeastFiles, kMostFiles, config.native_open_files);
    read_limit(reader, "native.writable_layer", kLeastLayer, kMostLayer,
               "a size from 16Mi to 16Ti, such as \"10Gi\"", config.native_limits.disk_bytes);
    constexpr std::string_view kRate = "bytes a second from 8Ki to 32Gi, such as \"10Mi\"";
    read_limit(reader, "native.network_rate", kLeastRate, kMostRate, kRate,
               config.native_limits.network_rate);
    read_limit(reader, "native.io_read_rate", kLeastRate, kMostRate, kRate,
               config.native_limits.io_read_rate);
    read_limit(reader, "native.io_write_rate", kLeastRate, kMostRate, kRate,
               config.native_limits.io_write_rate);
    std::string network = "default";
    reader.text("native.network", network);
    if (network != "default" && network != "none") {
        reader.fail("native.network", "must be default or none");
    }
    config.native_network_off = network == "none";
    reader.number("metrics.sandboxes", 0, 10'000, config.metrics_sandboxes);
    reader.text("native.publish_host", config.publish_host);
    if (!is_ipv4(config.publish_host)) {
        reader.fail("native.publish_host", "must be an IPv4 address");
    }
}

}  // namespace opensandbox::server
