#include "egress/rules/policy_rules.hpp"

#include "base/digest.hpp"
#include "egress/policy/special_blocks.hpp"
#include "egress/rules/ports.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>

namespace opensandbox::egress::rules {

namespace {

template <class T>
void sort_unique(std::vector<T>& values) {
    std::ranges::sort(values);
    const auto rest = std::ranges::unique(values);
    values.erase(rest.begin(), rest.end());
}

std::array<std::uint8_t, 16> bytes_of(const IpAddress& address) {
    std::array<std::uint8_t, 16> bytes{};
    if (address.is_v6()) return address.to_v6().to_bytes();
    std::ranges::copy(address.to_v4().to_bytes(), bytes.begin());
    return bytes;
}

IpAddress from_bytes(const std::array<std::uint8_t, 16>& bytes, bool v6) {
    if (v6) return boost::asio::ip::address_v6(bytes);
    return boost::asio::ip::address_v4({bytes[0], bytes[1], bytes[2], bytes[3]});
}

/// The bits of byte `index` that a prefix of so many bits leaves free.
std::uint8_t free_bits(unsigned length, std::size_t index) {
    const auto begin = static_cast<unsigned>(index * 8);
    const unsigned kept = length > begin ? std::min(length - begin, 8U) : 0;
    return static_cast<std::uint8_t>(0xffU >> kept);
}

bool contain(const std::vector<ScopedPrefix>& rules, const IpAddress& address,
             std::uint8_t protocol, std::uint16_t port, std::optional<bool> within_private) {
    return std::ranges::any_of(rules, [&](const ScopedPrefix& rule) {
        return (!within_private || is_private(rule.prefix) == *within_private) &&
               rule.prefix.contains(address) && rule.scope.covers(protocol, port);
    });
}

bool contain(const std::vector<Prefix>& prefixes, const IpAddress& address) {
    return std::ranges::any_of(prefixes,
                               [&](const Prefix& prefix) { return prefix.contains(address); });
}

bool is_doh(const PolicyRules& rules, const IpAddress& address, bool with_ports,
            std::uint16_t port) {
    return rules.block_doh && with_ports && port == kHttpsPort &&
           (rules.doh_servers.empty() || contain(rules.doh_servers, address));
}

bool follows(const IpAddress& last, const IpAddress& first) {
    if (last.is_v4())
        return last.to_v4().to_uint() != 0xffffffffU &&
               first.to_v4().to_uint() == last.to_v4().to_uint() + 1;
    auto bytes = bytes_of(last);
    for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte)
        if (++*byte != 0) return bytes == bytes_of(first);
    return false;
}

}  // namespace

bool Scope::has_ports() const {
    return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
}

bool Scope::covers(std::uint8_t transport, std::uint16_t port) const {
    if (protocol == 0) return true;
    const bool with_ports = transport == IPPROTO_TCP || transport == IPPROTO_UDP;
    if (protocol == kOthers) return !with_ports;
    if (protocol != transport) return false;
    return !with_ports || (first <= port && port <= last);
}

std::vector<Scope> partition(const std::vector<Scope>& scopes) {
    std::vector<Scope> parts;
    for (const std::uint8_t transport : {IPPROTO_TCP, IPPROTO_UDP}) {
        std::set<std::uint32_t> borders;
        for (const auto& scope : scopes) {
            if (scope.protocol != transport || scope.first > scope.last) continue;
            borders.insert(scope.first);
            borders.insert(scope.last + 1U);
        }
        for (auto at = borders.begin(); at != borders.end() && std::next(at) != borders.end();
             ++at) {
            const Scope part(transport, static_cast<std::uint16_t>(*at),
                             static_cast<std::uint16_t>(*std::next(at) - 1));
            const bool used = std::ranges::any_of(scopes, [&](const Scope& scope) {
                return scope.covers(transport, part.first) && scope.protocol == transport;
            });
            if (used) parts.push_back(part);
        }
    }
    std::ranges::copy_if(scopes, std::back_inserter(parts),
                         [](const Scope& scope) { return !scope.has_ports(); });
    sort_unique(parts);
    return parts;
}

Result<std::vector<Scope>> parts_of(const Scope& whole, const std::vector<Scope>& parts) {
    if (std::ranges::find(parts, whole) != parts.end()) return std::vector<Scope>{whole};
    std::vector<Scope> found;
    std::uint32_t next = whole.first;
    while (whole.has_ports() && next <= whole.last) {
        const Scope* best = nullptr;
        for (const auto& part : parts) {
            const bool fits = part.protocol == whole.protocol && part.first == next &&
                              part.last >= part.first && part.last <= whole.last;
            if (fits && (best == nullptr || part.last > best->last)) best = &part;
        }
        if (best == nullptr) break;
        found.push_back(*best);
        next = best->last + 1U;
    }
    if (whole.has_ports() && next == whole.last + 1U) return found;
    return Error(ErrorCode::invalid_argument,
                 "the policy in force learns no addresses for these ports");
}

Prefix::Prefix(const IpAddress& address, unsigned bits)
    : length(std::min(bits, address.is_v6() ? 128U : 32U)) {
    auto bytes = bytes_of(address);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] &= static_cast<std::uint8_t>(~free_bits(length, i));
    network = from_bytes(bytes, address.is_v6());
}

Prefix::Prefix(const IpAddress& address) : Prefix(address, 128) {}

IpAddress Prefix::last() const {
    auto bytes = bytes_of(network);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] |= free_bits(length, i);
    return from_bytes(bytes, network.is_v6());
}

bool Prefix::contains(const IpAddress& address) const {
    return address.is_v6() == network.is_v6() && Prefix(address, length).network == network;
}

bool Prefix::contains(const Prefix& other) const {
    return other.length >= length && contains(other.network);
}

bool is_private(const Prefix& prefix) {
    return std::ranges::any_of(private_ranges(),
                               [&](const Prefix& range) { return range.contains(prefix); });
}

void PolicyRules::normalize() {
    sort_unique(denied);
    sort_unique(allowed);
    sort_unique(learned_scopes);
    sort_unique(doh_servers);
    sort_unique(intercepted_ports);
}

void PolicyRules::keep_scopes(const std::vector<Scope>& held) {
    learned_scopes.insert(learned_scopes.end(), held.begin(), held.end());
    normalize();
}

std::string PolicyRules::digest() const {
    std::string text;
    const auto put = [&](const auto&... words) { ((text += words, text += ' '), ...); };
    const auto put_scope = [&](const Scope& scope) {
        put(std::to_string(scope.protocol), std::to_string(scope.first),
            std::to_string(scope.last));
    };
    const auto put_prefix = [&](const Prefix& prefix) {
        put(prefix.network.to_string(), std::to_string(prefix.length));
    };
    const auto put_list = [&](const char* name, const std::vector<ScopedPrefix>& rules) {
        put(name);
        for (const auto& rule : rules) {
            put_prefix(rule.prefix);
            put_scope(rule.scope);
        }
    };
    put_list("denied", denied);
    put_list("allowed", allowed);
    put("learned");
    std::ranges::for_each(learned_scopes, put_scope);
    put(allow_by_default ? "allow" : "deny", refuse_private ? "public" : "any",
        block_doh ? "doh" : "-");
    std::ranges::for_each(doh_servers, put_prefix);
    put("intercepted");
    for (const auto port : intercepted_ports)
        put(std::to_string(port));

    constexpr std::size_t kDigits = 32;
    return sha256_hex(text).substr(0, kDigits);
}

const std::vector<Prefix>& private_ranges() {
    static const std::vector<Prefix> ranges = [] {
        std::vector<Prefix> made;
        for (const net::AddressBlock& block : special_blocks())
            made.emplace_back(block.network(), block.prefix());
        return made;
    }();
    return ranges;
}

Judgement judge(const PolicyRules& rules, const IpAddress& destination, std::uint8_t protocol,
                std::uint16_t port, const std::function<bool(const Scope&)>& learned) {
    const bool with_ports = protocol == IPPROTO_TCP || protocol == IPPROTO_UDP;
    if (with_ports && port == kDnsOverTlsPort) return Judgement::refused;
    if (is_doh(rules, destination, with_ports, port)) return Judgement::refused;
    if (contain(rules.denied, destination, protocol, port, std::nullopt)) return Judgement::refused;
    if (contain(rules.allowed, destination, protocol, port, true)) return Judgement::allowed;
    if (rules.refuse_private && contain(private_ranges(), destination)) return Judgement::refused;

    const auto intercepted = [&](std::uint16_t which) {
        return std::ranges::find(rules.intercepted_ports, which) != rules.intercepted_ports.end();
    };
    if (protocol == IPPROTO_UDP && port == kHttpsPort && intercepted(port))
        return Judgement::refused;
    const auto through_interceptor =
        protocol == IPPROTO_TCP && intercepted(port) ? Judgement::intercepted : Judgement::allowed;
    if (std::ranges::any_of(rules.learned_scopes, [&](const Scope& scope) {
            return scope.covers(protocol, port) && learned(scope);
        }))
        return through_interceptor;
    if (contain(rules.allowed, destination, protocol, port, false)) return Judgement::allowed;
    return rules.allow_by_default ? through_interceptor : Judgement::refused;
}

std::vector<std::pair<IpAddress, IpAddress>> merged_ranges(const std::vector<Prefix>& prefixes,
                                                           bool v6) {
    std::vector<std::pair<IpAddress, IpAddress>> ranges;
    for (const auto& prefix : prefixes)
        if (prefix.network.is_v6() == v6) ranges.emplace_back(prefix.network, prefix.last());
    std::ranges::sort(ranges);
    std::vector<std::pair<IpAddress, IpAddress>> merged;
    for (const auto& range : ranges) {
        const bool joins = !merged.empty() && (range.first <= merged.back().second ||
                                               follows(merged.back().second, range.first));
        if (!joins)
            merged.push_back(range);
        else if (merged.back().second < range.second)
            merged.back().second = range.second;
    }
    return merged;
}

}  // namespace opensandbox::egress::rules
