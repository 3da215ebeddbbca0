#include "image/store.hpp"
#include "model/warm_program.hpp"
#include "server/config/sections.hpp"

#include <algorithm>
#include <sstream>

namespace opensandbox::server {
namespace {

using runtime::native::PoolSettings;
using runtime::native::WarmOptions;

template <auto... pool>
constexpr std::array kPoolKeys{
    keys::number<pool..., &PoolSettings::size>("size", 0, 1000, ""),
    keys::number<pool..., &PoolSettings::max>("max", 0, 1000, ""),
    keys::number<pool..., &PoolSettings::idle_seconds>("idle_seconds", 1, 86'400, ""),
};

/// Of `size` and `max` one that is not said follows the other; both that are said must fit.
void fit_pool(ConfigReader& reader, const std::string& table, PoolSettings& pool) {
    if (!reader.node(table + ".max")) pool.max = std::max(pool.max, pool.size);
    if (!reader.node(table + ".size")) pool.size = std::min(pool.size, pool.max);
    if (pool.max < pool.size) reader.fail(table + ".max", "must be at least " + table + ".size");
}

void fit_blanks(ConfigReader& reader, Config& config) {
    fit_pool(reader, "native.pool", config.pool);
}

void fit_warm(ConfigReader& reader, Config& config) {
    const toml::node* warm = reader.node("native.warm");
    if (!warm) return;
    if (!warm->is_table()) return reader.fail("native.warm", "must be a table ([native.warm])");
    fit_pool(reader, "native.warm", config.warm.pool);
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
    Config said;  // rows fill a Config
    said.pool = config.warm.pool;
    read_keys(own, "image", kPoolKeys<&Config::pool>, said);
    fit_pool(own, "image", said.pool);
    WarmOptions::Image image;
    image.pool = said.pool;
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

void read_warm_images(ConfigReader& reader, Config& config) {
    const toml::node* images = reader.node("native.warm.images");
    if (!images) return;
    if (!images->is_table()) return reader.fail("native.warm.images", "must be a table");
    for (const auto& [name, node] : *images->as_table())
        read_warm_image(reader, name.str(), node, config);
}

constexpr std::array kWarmImageKeys{
    keys::irregular("programs", R"([{ language = "python", import = ["json", "numpy"] }])"),
    keys::irregular("size", "4"),
    keys::irregular("max", "16"),
    keys::irregular("idle_seconds", "60"),
};

}  // namespace

constinit const Section kPoolSection{
    .name = "native.pool",
    .comment =
        "Sandboxes made ready before anybody asks for one: creates served from them take "
        "milliseconds. As many as `size` always; after a burst that needed more, up to "
        "`max`, as far as addresses and a quarter of the free memory reach (1 MiB each). "
        "What was not needed for `idle_seconds` goes again, by halves. Images that are "
        "asked for again wait mounted in most of them; a quarter, at most eight, stays for "
        "others.",
    .keys = kPoolKeys<&Config::pool>,
    .read = fit_blanks};
constinit const Section kWarmSection{
    .name = "native.warm",
    .comment =
        "Images that declare programs to be started ahead, by their label "
        "`opensandbox.io/warm` or below, have slots of their own, in which the image is "
        "mounted and the programs run: the first code of a sandbox that comes out of one "
        "answers in milliseconds. Per image, as in [native.pool]; max = 0 turns them off.",
    .keys = kPoolKeys<&Config::warm, &WarmOptions::pool>,
    .read = fit_warm};
constinit const Section kWarmImageSection{.name = R"(native.warm.images."python:3.12")",
                                          .keys = kWarmImageKeys,
                                          .read = read_warm_images,
                                          .off = true};

}  // namespace opensandbox::server
