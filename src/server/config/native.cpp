#include "model/resource_limits.hpp"
#include "net/ipv6_range.hpp"
#include "server/config/sections.hpp"

#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>

namespace opensandbox::server {
namespace {

/// IPv4 network of /8 to /28.
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

bool is_address_range6(std::string_view text) {
    return text == "auto" || text == "none" || net::Ipv6Range::parse(text);
}

bool is_address(std::string_view text) {
    boost::system::error_code no_address;
    (void)boost::asio::ip::make_address_v6(std::string(text), no_address);
    return !no_address || is_ipv4(text);
}

/// A count is a number, all else a text with a unit. What is not given stays.
void read_limit(ConfigReader& reader, const model::LimitRow& row, std::string_view path,
                std::uint64_t& into) {
    if (row.unit == model::LimitUnit::count) {
        auto count = static_cast<std::int64_t>(into);
        reader.number(path, static_cast<std::int64_t>(row.least),
                      static_cast<std::int64_t>(row.most), count);
        into = static_cast<std::uint64_t>(count);
        return;
    }
    std::string text;
    reader.text(path, text);
    if (text.empty()) return;
    const auto amount = model::parse_memory(text);
    if (amount && *amount >= row.least && *amount <= row.most) {
        into = *amount;
    } else {
        reader.fail(path, "must be " + model::range_text(row) + ", such as \"" +
                              std::string(row.example) + "\"");
    }
}

/// What each sandbox may use at most whose request says nothing of it; the limit's own row has the
/// name and the bounds.
template <std::uint64_t model::ResourceLimits::* member>
constexpr Key limit(std::string_view help) {
    Key key{.name = model::limit_row(member).setting, .help = help};
    key.read = [](ConfigReader& reader, const Key&, std::string_view path, Config& config) {
        read_limit(reader, model::limit_row(member), path, config.native_limits.*member);
    };
    key.shown = [](const Config& config) { return toml_value(config.native_limits.*member); };
    return key;
}

constexpr std::array kPullPolicies{
    keys::Word{"missing", registry::PullPolicy::missing},
    keys::Word{"never", registry::PullPolicy::never},
    keys::Word{"always", registry::PullPolicy::always},
};
constexpr std::array kNetworks{keys::Word{"default", false}, keys::Word{"none", true}};

constexpr std::array kNativeKeys{
    keys::text<&Config::state_dir>(
        "state_dir",
        "Everything the server keeps: store, images, sandboxes, key. /var/lib/opensandbox for "
        "root, else ~/.opensandbox.")
        .like("\"/var/lib/opensandbox\"")
        .must(is_absolute_or_empty, "must be an absolute path"),
    keys::text<&Config::address_range>(
        "address_range",
        "IPv4 network of the sandboxes, /8 to /28; the host takes its first address.")
        .must(is_address_range, "must be an IPv4 network of /8 to /28, such as 10.77.0.0/16"),
    keys::text<&Config::address_range6>(
        "address_range6",
        "Private IPv6 network of the sandboxes, /64 to /112 within fc00::/7; \"auto\": one of this "
        "server's own; \"none\": they have no IPv6. Nor have they any where the host does not "
        "forward it (net.ipv6.conf.all.forwarding): that setting is left as it is.")
        .must(is_address_range6,
              "must be auto, none, or a private IPv6 network (within fc00::/7) of /64 to /112, "
              "such as fd77::/64"),
    keys::text<&Config::publish_host>(
        "publish_host",
        "Address of the host, IPv4 or IPv6, on which the agents and the published ports of "
        "sandboxes are reachable; \"::\" stands for all of both.")
        .must(is_address, "must be an IPv4 or IPv6 address"),
    keys::choice<kPullPolicies, &Config::registry, &registry::RegistryOptions::policy>(
        "pull",
        "Images are pulled from their registry when they are missing; or \"always\", to have the "
        "newest under that name; or \"never\"."),
    limit<&model::ResourceLimits::pids>(
        "What a sandbox may use whose resourceLimits say nothing of it: how many processes and "
        "threads, and how many files each of them may have open (by default what the host allows, "
        "at most 65536)."),
    limit<&model::ResourceLimits::open_files>("").like("1024"),
    limit<&model::ResourceLimits::disk_bytes>(
        "Size of the writable layer (resourceLimits.ephemeral-storage); without it a sandbox can "
        "fill the disk of the state directory. Needs mkfs.ext4 on the host.")
        .like("\"10Gi\""),
    limit<&model::ResourceLimits::network_rate>(
        "Bytes a second over the network, each way, and from and to the disk.")
        .like("\"100Mi\""),
    limit<&model::ResourceLimits::io_read_rate>("").like("\"100Mi\""),
    limit<&model::ResourceLimits::io_write_rate>("").like("\"100Mi\""),
    keys::choice<kNetworks, &Config::native_network_off>(
        "network",
        "\"none\": sandboxes have no network but their loopback, unless "
        "extensions.\"opensandbox.io/network\" asks for one."),
};

static_assert(std::ranges::all_of(model::kLimits, [](const model::LimitRow& row) {
    return row.setting.empty() ||
           std::ranges::find(kNativeKeys, row.setting, &Key::name) != kNativeKeys.end();
}));

constexpr std::array kMetricsKeys{
    keys::number<&Config::metrics_sandboxes>(
        "sandboxes", 0, 10'000,
        "How many sandboxes, at most, /metrics shows with series of their own to callers with a "
        "key (0 to 10000)."),
};

}  // namespace

constinit const Section kNativeSection{.name = "native", .keys = kNativeKeys};
constinit const Section kMetricsSection{.name = "metrics", .keys = kMetricsKeys};

}  // namespace opensandbox::server
