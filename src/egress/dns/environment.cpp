#include "egress/dns/environment.hpp"

#include "egress/dns/upstream_health.hpp"
#include "net/dns/resolver_settings.hpp"
#include "net/dns/wire_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace opensandbox::egress::dns {

namespace {

namespace ip = boost::asio::ip;

constexpr std::string_view prefix = "OPENSANDBOX_EGRESS_";
constexpr std::uint16_t dns_port = 53;
constexpr std::size_t max_from_file = 10;

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t start = text.find_first_not_of(blank);
    if (start == std::string_view::npos) return {};
    return text.substr(start, text.find_last_not_of(blank) - start + 1);
}

/// The parts between commas that are not empty.
std::vector<std::string_view> listed(std::string_view text) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view part = trimmed(text.substr(0, comma));
        if (!part.empty()) parts.push_back(part);
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return parts;
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<ip::address> literal(std::string_view text) {
    boost::system::error_code wrong;
    const auto address = ip::make_address(std::string(text), wrong);
    if (wrong) return std::nullopt;
    return address;
}

std::optional<UpstreamServer> upstream(std::string_view text) {
    std::string_view host = text;
    std::string_view port;
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos) return std::nullopt;
        host = text.substr(1, close - 1);
        const std::string_view rest = text.substr(close + 1);
        if (!rest.empty() && !rest.starts_with(':')) return std::nullopt;
        if (!rest.empty()) port = rest.substr(1);
        if (rest == ":" || host.find(':') == std::string_view::npos) return std::nullopt;
    } else if (std::count(text.begin(), text.end(), ':') == 1) {
        host = text.substr(0, text.find(':'));
        port = text.substr(text.find(':') + 1);
        if (port.empty()) return std::nullopt;
    }
    const auto address = literal(host);
    const auto at = port.empty() ? std::optional<std::uint64_t>(dns_port) : number(port);
    if (!address || address->is_unspecified() || !at || *at == 0 || *at > 65535) {
        return std::nullopt;
    }
    return UpstreamServer(ip::udp::endpoint(*address, static_cast<std::uint16_t>(*at)));
}

void add_once(std::vector<UpstreamServer>& servers, UpstreamServer server) {
    const bool known = std::any_of(servers.begin(), servers.end(), [&](const UpstreamServer& each) {
        return each.endpoint == server.endpoint;
    });
    if (!known) servers.push_back(std::move(server));
}

std::vector<UpstreamServer> servers_of(std::string_view resolv_conf) {
    const auto named = net::dns::parse_resolver_settings(resolv_conf, max_from_file);
    std::vector<UpstreamServer> servers;
    for (const bool loopback : {false, true}) {
        for (const ip::address& address : named.servers) {
            if (address.is_loopback() != loopback || address.is_unspecified()) continue;
            add_once(servers, UpstreamServer(ip::udp::endpoint(address, dns_port)));
        }
    }
    if (servers.empty()) {
        servers.emplace_back(ip::udp::endpoint(ip::make_address("8.8.8.8"), dns_port));
    }
    return servers;
}

/// Reads variables; the first wrong one of ours is kept as the error.
class Reader {
  public:
    Reader(const Variables& variable, Environment& environment)
        : variable_(variable), environment_(environment) {}

    std::string text(std::string_view name) const {
        const auto value = variable_(std::string(prefix) + std::string(name));
        return std::string(trimmed(value.value_or("")));
    }
    /// Of the contract's: `fallback` with a warning when it is none.
    std::chrono::seconds seconds(std::string_view name, std::uint64_t most,
                                 std::chrono::seconds fallback) {
        const std::string value = text(name);
        if (value.empty()) return fallback;
        const auto parsed = number(value);
        if (parsed && *parsed >= 1 && *parsed <= most) return std::chrono::seconds(*parsed);
        warn(name, value, "must be 1 to " + std::to_string(most) + " seconds");
        return fallback;
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
    void warn(std::string_view name, std::string_view value, std::string_view what) {
        environment_.warnings.push_back(described(name, value, what));
    }
    void refuse(std::string_view name, std::string_view value, std::string_view what) {
        if (status_) status_ = Error(ErrorCode::invalid_argument, described(name, value, what));
    }
    [[nodiscard]] const Status& status() const { return status_; }

  private:
    static std::string described(std::string_view name, std::string_view value,
                                 std::string_view what) {
        return std::string(prefix) + std::string(name) + "=\"" + std::string(value) +
               "\": " + std::string(what);
    }
    const Variables& variable_;
    Environment& environment_;
    Status status_;
};

void read_upstream(Reader& reader, Environment& environment, std::string_view resolv_conf) {
    UpstreamSettings& upstream = environment.settings.upstream;
    const std::string servers = reader.text("DNS_UPSTREAM");
    if (servers.empty()) {
        upstream.servers = servers_of(resolv_conf);
    } else if (auto parsed = parse_upstreams(servers)) {
        upstream.servers = std::move(*parsed);
    } else {
        reader.refuse("DNS_UPSTREAM", servers, parsed.error().message());
    }
    upstream.timeout = reader.seconds("DNS_UPSTREAM_TIMEOUT", 120, std::chrono::seconds(5));
    upstream.probe_interval =
        reader.seconds("DNS_UPSTREAM_PROBE_INTERVAL_SEC", 3600, std::chrono::seconds(30));
    const std::string probe = reader.text("DNS_UPSTREAM_PROBE");
    if (!probe.empty() && probe_question(probe)) {
        upstream.probe = probe;
    } else if (!probe.empty()) {
        reader.warn("DNS_UPSTREAM_PROBE", probe, "must be a name");
    }
    const std::string mixed = net::dns::lower_case(reader.text("DNS_MIXED_CASE"));
    upstream.mixed_case =
        mixed == "1" || mixed == "true" || mixed == "yes" || mixed == "y" || mixed == "on";
    const std::string exempt = reader.text("NAMESERVER_EXEMPT");
    for (const std::string_view part : listed(exempt)) {
        if (const auto address = literal(part)) environment.exempt.push_back(*address);
    }
}

void read_filter(Reader& reader, ProxySettings& settings) {
    const std::string denial = net::dns::lower_case(reader.text("DNS_DENIAL"));
    if (denial == "refused") {
        settings.denial = DenialAnswer::refused;
    } else if (!denial.empty() && denial != "nxdomain") {
        reader.refuse("DNS_DENIAL", denial, "must be nxdomain or refused");
    }
    const std::string names = reader.text("DNS_QUERY_TYPES");
    std::set<std::uint16_t> types;
    for (const std::string_view name : listed(names)) {
        if (const auto type = query_type(name)) {
            types.insert(*type);
        } else {
            reader.refuse("DNS_QUERY_TYPES", name, "is no query type");
        }
    }
    if (!types.empty()) settings.types = std::move(types);
    reader.limit("DNS_MAX_LABEL", settings.names.label);
    reader.limit("DNS_MAX_NAME", settings.names.below);
    reader.limit("DNS_MAX_LABELS", settings.names.labels);
    reader.limit("DNS_MAX_DISTINCT", settings.names.distinct);
    reader.limit("DNS_CACHE_BYTES", settings.cache.bytes);
    ClientLimits& clients = settings.clients;
    reader.limit("DNS_RATE", clients.queries_per_second);
    clients.queries_burst = std::max(clients.queries_burst, clients.queries_per_second);
    reader.limit("DNS_FORWARD_RATE", clients.forwarded_per_second);
    clients.forwarded_burst = std::max(1.0, 2 * clients.forwarded_per_second);
}

}  // namespace

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

Result<std::vector<UpstreamServer>> parse_upstreams(std::string_view text) {
    std::vector<UpstreamServer> servers;
    for (const std::string_view part : listed(text)) {
        auto server = upstream(part);
        if (!server) {
            return Error(ErrorCode::invalid_argument,
                         "\"" + std::string(part) +
                             "\" is no address of a resolver: ip, ip:port, [v6] or [v6]:port");
        }
        add_once(servers, std::move(*server));
    }
    if (servers.empty()) {
        return Error(ErrorCode::invalid_argument, "names no resolver");
    }
    return servers;
}

Result<Environment> read_environment(const Variables& variable, std::string_view resolv_conf) {
    Environment environment;
    Reader reader(variable, environment);
    read_upstream(reader, environment, resolv_conf);
    read_filter(reader, environment.settings);
    if (!reader.status()) return reader.status().error();
    return environment;
}

}  // namespace opensandbox::egress::dns
