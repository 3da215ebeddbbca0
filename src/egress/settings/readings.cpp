#include "egress/settings/readings.hpp"

#include "egress/intercept/core/pass_through_list.hpp"
#include "egress/policy/target.hpp"
#include "egress/settings/names.hpp"
#include "json/document.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace opensandbox::egress::reading {
namespace {

/// As many as one iptables rule holds: sidecars of either kind take the same values.
constexpr std::size_t kMaxInterceptPorts = 15;

}  // namespace

bool limit(SettingDraft& draft, const std::string& value, std::uint32_t& into) {
    constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
    const auto parsed = parse_number(value, 0, kMost);
    if (parsed) {
        into = *parsed;
    } else {
        draft.refuse(lower_case(value), "must be a number from 0 to " + std::to_string(kMost));
    }
    return parsed.has_value();
}

void mode(SettingDraft& draft, const std::string& value) {
    const auto nft = parse_mode(value);
    if (!nft) draft.warn("must be dns or dns+nft; dns is used");
    draft.parsed.options.nft = nft.value_or(false);
}

void http_address(SettingDraft& draft, const std::string& value) {
    const auto listen = parse_listen_address(value);
    if (!listen) return draft.fail("must be [address]:port");
    draft.parsed.options.http = *listen;
}

void profile(SettingDraft& draft, const std::string& value) {
    const std::string profile = lower_case(value);
    if (profile == "fleet") {
        draft.fail("fleet is not supported", ErrorCode::unsupported);
    } else if (profile != "sidecar") {
        draft.fail("must be sidecar");
    }
}

void nameserver_exempt(SettingDraft& draft, const std::string& value) {
    for (const std::string& item : split_list(value)) {
        if (const auto address = parse_literal(item)) {
            draft.parsed.options.nameserver_exempt.push_back(*address);
        } else {
            draft.warn(item + " is no address and is ignored");
        }
    }
}

void dns_upstream(SettingDraft& draft, const std::string& value) {
    auto& upstreams = draft.parsed.options.dns_upstreams;
    for (const std::string& item : split_list(value)) {
        const auto upstream = parse_dns_upstream(item);
        if (!upstream) return draft.fail(item + ": must be a literal address or address:port");
        if (std::ranges::find(upstreams, *upstream) == upstreams.end()) {
            upstreams.push_back(*upstream);
        }
    }
}

void dns_probe(SettingDraft& draft, const std::string& value) {
    const auto name = parse_host_name(value);
    if (!name && value != ".") draft.warn("is no name; . is used");
    draft.parsed.options.dns_probe = name ? *name : ".";
}

void doh_blocklist(SettingDraft& draft, const std::string& value) {
    for (const std::string& item : split_list(value)) {
        if (const auto block = net::AddressBlock::parse(item)) {
            draft.parsed.options.doh_blocklist.push_back(*block);
        } else {
            draft.warn(item + " is no address and is ignored");
        }
    }
}

void denial(SettingDraft& draft, const std::string& value) {
    const std::string denial = lower_case(value);
    if (denial == "refused") {
        draft.parsed.dns.denial = dns::DenialAnswer::refused;
    } else if (denial == "nxdomain") {
        draft.parsed.dns.denial = dns::DenialAnswer::no_such_name;
    } else {
        draft.refuse(denial, "must be nxdomain or refused");
    }
}

void query_types(SettingDraft& draft, const std::string& value) {
    std::set<std::uint16_t> types;
    for (const std::string& name : split_list(lower_case(value))) {
        if (const auto type = parse_query_type(name)) {
            types.insert(*type);
        } else {
            draft.refuse(name, "is no query type");
        }
    }
    if (!types.empty()) draft.parsed.dns.types = std::move(types);
}

void query_rate(SettingDraft& draft, const std::string& value) {
    std::uint32_t rate = 0;
    if (!limit(draft, value, rate)) return;
    dns::ClientLimits& clients = draft.parsed.dns.clients;
    clients.queries_per_second = rate;
    clients.queries_burst = std::max(clients.queries_burst, clients.queries_per_second);
}

void forward_rate(SettingDraft& draft, const std::string& value) {
    std::uint32_t rate = 0;
    if (!limit(draft, value, rate)) return;
    dns::ClientLimits& clients = draft.parsed.dns.clients;
    clients.forwarded_per_second = rate;
    clients.forwarded_burst = std::max(1.0, 2 * clients.forwarded_per_second);
}

void mixed_case(SettingDraft& draft, const std::string& value) {
    draft.parsed.dns.upstream.mixed_case = is_truthy(value);
}

void extra_ports(SettingDraft& draft, const std::string& value) {
    auto& ports = draft.parsed.options.intercept_ports;
    for (const std::string& item : split_list(value)) {
        const auto port = parse_number(item, 1, 65535);
        if (!port) return draft.fail("must be ports from 1 to 65535");
        const auto number = static_cast<std::uint16_t>(*port);
        if (std::ranges::find(ports, number) == ports.end()) ports.push_back(number);
    }
    if (ports.size() > kMaxInterceptPorts) {
        draft.fail("must not make more than 15 ports with 80 and 443");
    }
}

void ignored_hosts(SettingDraft& draft, const std::string& value) {
    auto& entries = draft.parsed.options.pass_through;
    entries = split_list(value);
    if (const auto listed = pass_through_list(entries); !listed) {
        draft.fail(listed.error().message());
    }
}

// A JSON list of names and `*.name`, which can be compared with those of bindings.
void passed_hosts(SettingDraft& draft, const std::string& value) {
    const auto document = json::parse(value);
    if (!document || !document->is_array()) return draft.fail("must be a JSON list");
    for (const json::value& item : document->get_array()) {
        std::string entry = item.is_string() ? std::string(item.get_string()) : std::string();
        const auto listed = PassThroughList::make({entry}, {});
        if (!listed) return draft.fail("must be a JSON list of names and *.names");
        draft.parsed.options.pass_through.push_back(std::move(entry));
    }
}

void interception_mode(SettingDraft& draft, const std::string& value) {
    if (value == "all") return;
    if (value != setting::kCredentialBound) return draft.fail("must be all or credential-bound");
    draft.parsed.options.credential_bound = true;
}

void script(SettingDraft& draft, const std::string&) {
    draft.fail("scripts of mitmproxy are not supported", ErrorCode::unsupported);
}

void trusted_proxies(SettingDraft& draft, const std::string& value) {
    for (const std::string& item : split_list(value)) {
        const auto block = net::AddressBlock::parse(item);
        if (!block) return draft.fail(item + ": " + block.error().message());
        draft.parsed.options.vault_trusted_proxies.push_back(*block);
    }
}

void proxy_socket(SettingDraft& draft, const std::string& value) {
    if (value.front() != '/') return draft.fail("must be an absolute path");
    draft.warn("the interceptor reads the vault in its own process; there is no such socket");
}

void log_level(SettingDraft& draft, const std::string& value) {
    const auto level = parse_log_level(value);
    if (!level) draft.warn("must be debug, info, warn, error or fatal; info is used");
    draft.parsed.options.log_level = level.value_or(log::Level::info);
}

void log_outputs(SettingDraft& draft, const std::string& value) {
    auto& outputs = draft.parsed.options.log_outputs;
    outputs = split_list(value);
    if (outputs.empty()) outputs.emplace_back("stdout");
}

void deny_webhook(SettingDraft& draft, const std::string& value) {
    const std::string scheme = lower_case(value.substr(0, 8));
    if (scheme.starts_with("http://") || scheme.starts_with("https://")) {
        draft.parsed.options.deny_webhook = value;
    } else {
        draft.warn("must be an http or https URL; no webhook is called");
    }
}

void extra_attributes(SettingDraft& draft, const std::string& value) {
    draft.parsed.options.extra_attributes = parse_attributes(value);
}

}  // namespace opensandbox::egress::reading
