#include "egress/settings/values.hpp"

#include "egress/policy/target.hpp"
#include "net/dns/records.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace opensandbox::egress {
namespace {

constexpr std::uint16_t kDnsPort = 53;

std::optional<std::uint16_t> parse_port(std::string_view text) {
    const auto port = parse_number(text, 1, 65535);
    if (!port) return std::nullopt;
    return static_cast<std::uint16_t>(*port);
}

struct HostPort {
    std::string_view host;  ///< without brackets
    std::string_view port;
    bool has_port = false;
};

/// "host", "host:port", "[v6]", "[v6]:port"; what has two colons without brackets is a host.
std::optional<HostPort> split_host_port(std::string_view text) {
    HostPort parts;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == text.npos) return std::nullopt;
        parts.host = text.substr(1, end - 1);
        if (parts.host.find(':') == parts.host.npos) return std::nullopt;
        const std::string_view rest = text.substr(end + 1);
        parts.has_port = !rest.empty();
        if (parts.has_port && rest.front() != ':') return std::nullopt;
        if (parts.has_port) parts.port = rest.substr(1);
        return parts;
    }
    const auto colon = text.find(':');
    parts.has_port = colon != text.npos && text.find(':', colon + 1) == text.npos;
    parts.host = parts.has_port ? text.substr(0, colon) : text;
    if (parts.has_port) parts.port = text.substr(colon + 1);
    return parts;
}

}  // namespace

std::string_view trim_value(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n\v\f";
    const auto from = text.find_first_not_of(kSpace);
    if (from == text.npos) return {};
    return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
}

std::vector<std::string> split_list(std::string_view text) {
    std::vector<std::string> items;
    while (true) {
        const auto comma = text.find(',');
        const std::string_view item = trim_value(text.substr(0, comma));
        if (!item.empty()) items.emplace_back(item);
        if (comma == text.npos) return items;
        text.remove_prefix(comma + 1);
    }
}

bool is_truthy(std::string_view text) {
    constexpr std::array<std::string_view, 5> kTrue{"1", "true", "yes", "y", "on"};
    return std::ranges::find(kTrue, lower_case(trim_value(text))) != kTrue.end();
}

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t first,
                                          std::uint32_t last) {
    text = trim_value(text);
    std::uint32_t number = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (number < first || number > last) return std::nullopt;
    return number;
}

std::optional<net::Address> parse_literal(std::string_view text) {
    const auto block = net::AddressBlock::parse(text);
    if (!block || text.find('/') != text.npos) return std::nullopt;
    return block->network();
}

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
    const auto parts = split_host_port(trim_value(text));
    if (!parts || !parts->has_port) return std::nullopt;
    ListenAddress listen;
    const auto port = parse_port(parts->port);
    if (!port) return std::nullopt;
    listen.port = *port;
    if (parts->host.empty()) return listen;
    listen.address = parse_literal(parts->host == "localhost" ? "127.0.0.1" : parts->host);
    if (!listen.address) return std::nullopt;
    return listen;
}

std::optional<DnsUpstream> parse_dns_upstream(std::string_view text) {
    const auto parts = split_host_port(trim_value(text));
    if (!parts) return std::nullopt;
    const auto address = parse_literal(parts->host);
    const auto port = parts->has_port ? parse_port(parts->port) : kDnsPort;
    if (!address || !port) return std::nullopt;
    return DnsUpstream(*address, *port);
}

std::optional<bool> parse_mode(std::string_view text) {
    bool dns = false;
    bool nft = false;
    const std::string mode = lower_case(trim_value(text));
    for (std::size_t from = 0; from <= mode.size();) {
        const auto end = std::min(mode.find('+', from), mode.size());
        const std::string_view token = trim_value(std::string_view(mode).substr(from, end - from));
        if (token != "dns" && token != "nft") return std::nullopt;
        (token == "dns" ? dns : nft) = true;
        from = end + 1;
    }
    if (!dns) return std::nullopt;
    return nft;
}

std::optional<std::uint16_t> parse_query_type(std::string_view name) {
    namespace dns = net::dns;
    struct Named {
        std::string_view name;
        std::uint16_t type;
    };
    constexpr std::array kNown{Named{"a", dns::kTypeA},
                               Named{"ns", dns::kTypeNs},
                               Named{"cname", dns::kTypeCname},
                               Named{"soa", dns::kTypeSoa},
                               Named{"ptr", dns::kTypePtr},
                               Named{"mx", dns::kTypeMx},
                               Named{"txt", dns::kTypeTxt},
                               Named{"aaaa", dns::kTypeAaaa},
                               Named{"srv", dns::kTypeSrv},
                               Named{"naptr", dns::kTypeNaptr},
                               Named{"dname", dns::kTypeDname},
                               Named{"ds", dns::kTypeDs},
                               Named{"sshfp", 44},
                               Named{"rrsig", dns::kTypeRrsig},
                               Named{"nsec", 47},
                               Named{"dnskey", dns::kTypeDnskey},
                               Named{"tlsa", dns::kTypeTlsa},
                               Named{"svcb", dns::kTypeSvcb},
                               Named{"https", dns::kTypeHttps},
                               Named{"caa", dns::kTypeCaa}};
    const std::string lower = lower_case(name);
    for (const Named& each : kNown) {
        if (each.name == lower) return each.type;
    }
    if (!lower.starts_with("type")) return std::nullopt;
    const std::string_view digits = std::string_view(lower).substr(4);
    const auto number = parse_number(digits, 1, 65535);
    if (!number || trim_value(digits) != digits) return std::nullopt;
    return static_cast<std::uint16_t>(*number);
}

std::optional<log::Level> parse_log_level(std::string_view text) {
    const std::string level = lower_case(trim_value(text));
    if (level == "debug") return log::Level::debug;
    if (level == "info") return log::Level::info;
    if (level == "warn" || level == "warning") return log::Level::warn;
    // Nothing is logged as fatal alone.
    if (level == "error" || level == "fatal") return log::Level::error;
    return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> parse_attributes(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> attributes;
    for (const std::string_view item : split_list(text)) {
        const auto equals = item.find('=');
        if (equals == item.npos) continue;
        const std::string_view key = trim_value(item.substr(0, equals));
        const std::string_view value = trim_value(item.substr(equals + 1));
        if (!key.empty() && !value.empty()) attributes.emplace_back(key, value);
    }
    return attributes;
}

}  // namespace opensandbox::egress
