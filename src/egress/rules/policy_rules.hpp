#pragma once

#include "base/error.hpp"

#include <boost/asio/ip/address.hpp>

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Egress control in the packet filter: which addresses a sandbox reaches.
namespace opensandbox::egress::rules {

using IpAddress = boost::asio::ip::address;

/// A protocol and a range of its ports.
struct Scope {
    Scope() = default;
    explicit Scope(std::uint8_t transport) : protocol(transport) {}
    Scope(std::uint8_t transport, std::uint16_t port)
        : protocol(transport), first(port), last(port) {}
    Scope(std::uint8_t transport, std::uint16_t from, std::uint16_t to)
        : protocol(transport), first(from), last(to) {}

    /// All protocols but TCP and UDP.
    static constexpr std::uint8_t kOthers = 255;

    std::uint8_t protocol = 0;  ///< IPPROTO_TCP, ..., `kOthers`; 0: all protocols and ports
    std::uint16_t first = 0;    ///< ports are of TCP and UDP only
    std::uint16_t last = 65535;

    [[nodiscard]] bool covers(std::uint8_t transport, std::uint16_t port) const;
    [[nodiscard]] bool has_ports() const;
    friend auto operator<=>(const Scope&, const Scope&) = default;
};

/// Cuts the ports of TCP and of UDP at every border that one of these has, so that each of them is
/// a union of some of the result, which do not overlap. Those without ports are passed on.
std::vector<Scope> partition(const std::vector<Scope>& scopes);
/// Those of `parts` that make up this one; invalid_argument when they leave a gap.
Result<std::vector<Scope>> parts_of(const Scope& whole, const std::vector<Scope>& parts);

/// A block of addresses of either family. An IPv4 address within IPv6 (::ffff:0:0/96) is one of
/// IPv6 here.
struct Prefix {
    Prefix(const IpAddress& address, unsigned bits);
    /// One address.
    explicit Prefix(const IpAddress& address);

    IpAddress network;  ///< bits beyond the length are zero
    unsigned length;    ///< at most 32, or 128: longer ones are cut to that

    [[nodiscard]] IpAddress last() const;
    [[nodiscard]] bool contains(const IpAddress& address) const;
    [[nodiscard]] bool contains(const Prefix& other) const;
    friend bool operator==(const Prefix&, const Prefix&) = default;
    friend std::strong_ordering operator<=>(const Prefix& a, const Prefix& b) {
        if (a.network < b.network) return std::strong_ordering::less;
        if (b.network < a.network) return std::strong_ordering::greater;
        return a.length <=> b.length;
    }
};

struct ScopedPrefix {
    ScopedPrefix(const Prefix& where, const Scope& what = {}) : prefix(where), scope(what) {}

    Prefix prefix;
    Scope scope;
    friend auto operator<=>(const ScopedPrefix&, const ScopedPrefix&) = default;
};

/// What the packet filter needs to know of a policy. Names are not in it: the addresses that they
/// stand for are learned, each with some of `learned_scopes` (partition() makes them of the scopes
/// of all rules about names). Judged in this order, the first that
/// applies wins:
/// 1. port 853 (DNS over TLS or QUIC) is refused;
/// 2. `block_doh`: TCP and UDP port 443 of `doh_servers`, or of all addresses when there are none;
/// 3. `denied`;
/// 4. `allowed`, as far as it lies within a private range (see `refuse_private`);
/// 5. the private ranges, with `refuse_private`;
/// 6. UDP port 443 (QUIC), when port 443 is among `intercepted_ports`;
/// 7. learned addresses;
/// 8. the rest of `allowed`;
/// 9. `allow_by_default`, otherwise refused.
struct PolicyRules {
    std::vector<ScopedPrefix> denied;
    std::vector<ScopedPrefix> allowed;
    std::vector<Scope> learned_scopes;
    bool allow_by_default = false;
    /// Against names that resolve to addresses of private networks, of this host and of clouds'
    /// metadata services. Only a literal address or prefix that lies within such a range opens it.
    bool refuse_private = true;
    bool block_doh = false;
    std::vector<Prefix> doh_servers;
    /// TCP connections to these ports of learned addresses, and of all others too with
    /// `allow_by_default`, go to the interceptor; where there is none they are refused.
    std::vector<std::uint16_t> intercepted_ports;

    /// Sorted and without repetition, as equal rules are equal in.
    void normalize();
    /// Speaks of these besides, since addresses are learned with them already.
    void keep_scopes(const std::vector<Scope>& held);
    friend bool operator==(const PolicyRules&, const PolicyRules&) = default;
    /// Equal for equal rules once normalized: 32 hexadecimal digits.
    [[nodiscard]] std::string digest() const;
};

/// special_blocks() of the policy: both speak of the same addresses.
const std::vector<Prefix>& private_ranges();
/// It lies within one of them.
bool is_private(const Prefix& prefix);

enum class Judgement : std::uint8_t { refused, allowed, intercepted };

/// How the packet filter judges a new connection. `learned` tells whether the address is learned
/// with this scope.
Judgement judge(const PolicyRules& rules, const IpAddress& destination, std::uint8_t protocol,
                std::uint16_t port, const std::function<bool(const Scope&)>& learned);

/// The smallest set of ranges, first and last address, that covers the same; of one family.
std::vector<std::pair<IpAddress, IpAddress>> merged_ranges(const std::vector<Prefix>& prefixes,
                                                           bool v6);

}  // namespace opensandbox::egress::rules
