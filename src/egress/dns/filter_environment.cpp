#include "egress/dns/filter_environment.hpp"

#include "net/dns/resolver_settings.hpp"
#include "net/dns/wire_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace opensandbox::egress::dns {

namespace {

namespace ip = boost::asio::ip;

constexpr std::string_view prefix = "OPENSANDBOX_EGRESS_DNS_";
constexpr std::uint16_t dns_port = 53;
constexpr std::size_t max_from_file = 10;

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t start = text.find_first_not_of(blank);
    if (start == std::string_view::npos) return {};
    return text.substr(start, text.find_last_not_of(blank) - start + 1);
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Reads variables; the first that is wrong is kept as the error.
class Reader {
  public:
    explicit Reader(const Variables& variable) : variable_(variable) {}

    [[nodiscard]] std::string text(std::string_view name) const {
        const auto value = variable_(std::string(prefix) + std::string(name));
        return net::dns::lower_case(trimmed(value ? std::string_view(*value) : std::string_view()));
    }
    template <class T>
    void limit(std::string_view name, T& into) {
        const std::string value = text(name);
        if (value.empty()) return;
        const auto parsed = number(value);
        constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
        if (parsed && *parsed <= most) {
            into = static_cast<T>(*parsed);
        } else {
            refuse(name, value, "must be a number from 0 to " + std::to_string(most));
        }
    }
    void refuse(std::string_view name, std::string_view value, std::string_view what) {
        if (!status_) return;
        status_ =
            Error(ErrorCode::invalid_argument, std::string(prefix) + std::string(name) + "=\"" +
                                                   std::string(value) + "\": " + std::string(what));
    }
    [[nodiscard]] const Status& status() const { return status_; }

  private:
    const Variables& variable_;
    Status status_;
};

void read_types(Reader& reader, std::set<std::uint16_t>& into) {
    const std::string value = reader.text("QUERY_TYPES");
    std::set<std::uint16_t> types;
    for (std::string_view rest = value; !rest.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view name = trimmed(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        if (name.empty()) continue;
        if (const auto type = query_type(name)) {
            types.insert(*type);
        } else {
            reader.refuse("QUERY_TYPES", name, "is no query type");
        }
    }
    if (!types.empty()) into = std::move(types);
}

}  // namespace

Status read_filter_environment(const Variables& variable, ProxySettings& settings) {
    Reader reader(variable);
    const std::string denial = reader.text("DENIAL");
    if (denial == "refused") {
        settings.denial = DenialAnswer::refused;
    } else if (denial == "nxdomain") {
        settings.denial = DenialAnswer::no_such_name;
    } else if (!denial.empty()) {
        reader.refuse("DENIAL", denial, "must be nxdomain or refused");
    }
    read_types(reader, settings.types);
    reader.limit("MAX_LABEL", settings.names.label);
    reader.limit("MAX_NAME", settings.names.below);
    reader.limit("MAX_LABELS", settings.names.labels);
    reader.limit("MAX_DISTINCT", settings.names.distinct);
    reader.limit("CACHE_BYTES", settings.cache.bytes);
    ClientLimits& clients = settings.clients;
    reader.limit("RATE", clients.queries_per_second);
    clients.queries_burst = std::max(clients.queries_burst, clients.queries_per_second);
    reader.limit("FORWARD_RATE", clients.forwarded_per_second);
    clients.forwarded_burst = std::max(1.0, 2 * clients.forwarded_per_second);
    const std::string mixed = reader.text("MIXED_CASE");
    constexpr std::array<std::string_view, 5> truthy{"1", "true", "yes", "y", "on"};
    if (!mixed.empty()) {
        settings.upstream.mixed_case =
            std::find(truthy.begin(), truthy.end(), mixed) != truthy.end();
    }
    return reader.status();
}

std::optional<std::uint16_t> query_type(std::string_view name) {
    namespace dns = net::dns;
    struct Named {
        std::string_view name;
        std::uint16_t type;
    };
    constexpr std::array known{Named{"a", dns::kTypeA},
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
    const std::string lower = dns::lower_case(name);
    for (const Named& each : known) {
        if (each.name == lower) return each.type;
    }
    if (!lower.starts_with("type")) return std::nullopt;
    const auto value = number(std::string_view(lower).substr(4));
    if (!value || *value == 0 || *value > 65535) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
}

std::vector<ip::udp::endpoint> default_upstreams(std::string_view resolv_conf) {
    const auto named = net::dns::parse_resolver_settings(resolv_conf, max_from_file);
    std::vector<ip::udp::endpoint> servers;
    for (const bool loopback : {false, true}) {
        for (const ip::address& address : named.servers) {
            if (address.is_loopback() != loopback || address.is_unspecified()) continue;
            const ip::udp::endpoint server(address, dns_port);
            const bool known = std::find(servers.begin(), servers.end(), server) != servers.end();
            if (!known) servers.push_back(server);
        }
    }
    if (servers.empty()) servers.emplace_back(ip::make_address("8.8.8.8"), dns_port);
    return servers;
}

}  // namespace opensandbox::egress::dns
