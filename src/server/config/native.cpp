#include "image/store.hpp"
#include "model/resource_limits.hpp"
#include "model/warm_program.hpp"
#include "net/ipv6_range.hpp"
#include "server/config/sections.hpp"

#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>
#include <sstream>

namespace opensandbox::server {
namespace {

/// A count is a number, all else a text with a unit. What is not given stays.
void read_limit(ConfigReader& reader, const model::LimitRow& row, model::ResourceLimits& limits) {
    const std::string key = "native." + std::string(row.setting);
    std::uint64_t& into = limits.*row.member;
    if (row.unit == model::LimitUnit::count) {
        auto value = static_cast<std::int64_t>(into);
        reader.number(key, static_cast<std::int64_t>(row.least),
                      static_cast<std::int64_t>(row.most), value);
        into = static_cast<std::uint64_t>(value);
        return;
    }
    std::string text;
    reader.text(key, text);
    if (text.empty()) return;
    const auto value = model::parse_memory(text);
    if (value && *value >= row.least && *value <= row.most) {
        into = *value;
    } else {
        reader.fail(key, "must be " + model::range_text(row) + ", such as \"" +
                             std::string(row.example) + "\"");
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

namespace {

using runtime::native::PoolSettings;

/// `size`, `max` and `idle_seconds` of a table; what it does not say stays.
void read_pool(ConfigReader& reader, const std::string& table, PoolSettings& pool) {
    constexpr std::int64_t most = 1000;
    constexpr std::int64_t day = 86'400;
    std::int64_t size = pool.size;
    reader.number(table + ".size", 0, most, size);
    // One that is said counts as it is.
    std::int64_t max = reader.node(table + ".max") ? 0 : std::max<std::int64_t>(pool.max, size);
    reader.number(table + ".max", 0, most, max);
    if (!reader.node(table + ".size")) size = std::min(size, max);
    if (max < size) reader.fail(table + ".max", "must be at least " + table + ".size");
    std::int64_t idle = pool.idle_seconds;
    reader.number(table + ".idle_seconds", 1, day, idle);
    pool.size = static_cast<std::uint32_t>(size);
    pool.max = static_cast<std::uint32_t>(max);
    pool.idle_seconds = static_cast<std::uint32_t>(idle);
}

/// An image's name may hold dots, which a path of keys cannot: its table is read as a document of
/// its own.
void read_warm_image(ConfigReader& reader, std::string_view name, const toml::node& node,
                     Config& config) {
    const std::string where = "native.warm.images.\"" + std::string(name) + "\"";
    auto reference = image::normalize_reference(name);
    if (!reference)
        return reader.fail(where, "must be a reference: " + reference.error().message());
    if (!node.is_table()) return reader.fail(where, "must be a table");
    toml::table document;
    document.insert("image", *node.as_table());
    ConfigReader own(document);
    runtime::native::WarmOptions::Image image;
    image.pool = config.warm.pool;
    read_pool(own, "image", image.pool);
    if (const toml::node* programs = own.node("image.programs")) {
        std::ostringstream text;
        text << toml::json_formatter{*programs};
        image.programs = text.str();
        if (auto parsed = model::parse_warm_programs(image.programs); !parsed)
            own.fail("image.programs", "must be such a list: " + parsed.error().message());
    }
    if (const std::string& errors = own.errors(); !errors.empty()) {
        // "image.size: …" is that table's size.
        const auto dot = errors.find('.');
        const auto colon = errors.find(": ");
        return reader.fail(where + errors.substr(dot, colon - dot), errors.substr(colon + 2));
    }
    config.warm.images.insert_or_assign(std::move(*reference), std::move(image));
}

void read_warm(ConfigReader& reader, Config& config) {
    const toml::node* warm = reader.node("native.warm");
    if (!warm) return;
    if (!warm->is_table()) return reader.fail("native.warm", "must be a table ([native.warm])");
    read_pool(reader, "native.warm", config.warm.pool);
    const toml::node* images = reader.node("native.warm.images");
    if (!images) return;
    if (!images->is_table()) return reader.fail("native.warm.images", "must be a table");
    for (const auto& [name, node] : *images->as_table())
        read_warm_image(reader, name.str(), node, config);
}

}  // namespace

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
    reader.text("native.address_range6", config.address_range6);
    const std::string& range6 = config.address_range6;
    if (range6 != "auto" && range6 != "none" && !net::Ipv6Range::parse(range6)) {
        reader.fail("native.address_range6",
                    "must be auto, none, or a private IPv6 network (within fc00::/7) of /64 to "
                    "/112, such as fd77::/64");
    }
    read_pool(reader, "native.pool", config.pool);
    read_warm(reader, config);
    for (const model::LimitRow& row : model::kLimits) {
        if (!row.setting.empty()) read_limit(reader, row, config.native_limits);
    }
    std::string network = "default";
    reader.text("native.network", network);
    if (network != "default" && network != "none") {
        reader.fail("native.network", "must be default or none");
    }
    config.native_network_off = network == "none";
    reader.number("metrics.sandboxes", 0, 10'000, config.metrics_sandboxes);
    reader.text("native.publish_host", config.publish_host);
    boost::system::error_code no_address;
    (void)boost::asio::ip::make_address_v6(config.publish_host, no_address);
    if (no_address && !is_ipv4(config.publish_host)) {
        reader.fail("native.publish_host", "must be an IPv4 or IPv6 address");
    }
}

}  // namespace opensandbox::server
