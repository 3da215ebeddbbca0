#pragma once

#include "base/error.hpp"
#include "net/ipv4_range.hpp"
#include "net/ipv6_range.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What packets of native sandboxes may do, enforced on the host's side of their links, where root
/// inside cannot reach it.
namespace opensandbox::runtime::native {

/// Which links and addresses the rules are about. Servers that share a host differ in all three.
struct FirewallOptions {
    FirewallOptions(std::string table_name, net::Ipv4Range address_range, std::string prefix)
        : table(std::move(table_name)), range(address_range), interface_prefix(std::move(prefix)) {}

    /// Of the gateway, the range's first address, where a resolver answers UDP and TCP; queries to
    /// the gateway's port 53 go there. 0: none.
    std::uint16_t resolver_port = 0;

    /// Where egress control answers on this host, UDP and TCP: reached by those connections that
    /// its own table sends there from somewhere else.
    std::vector<std::uint16_t> egress_ports;

    /// Connections that a sandbox may have at once, as the host's tracking counts them; 0: no
    /// limit, which needs less of the kernel.
    std::uint32_t connections = 0;

    std::string table;     ///< nftables table, family inet; 1 to 255 bytes, [A-Za-z0-9_]
    net::Ipv4Range range;  ///< addresses of the sandboxes
    std::optional<net::Ipv6Range> range6;  ///< likewise; none: no IPv6 packet gets through
    std::string
        interface_prefix;  ///< every link whose name begins so is a sandbox's; 1 to 14 bytes
};

/// Installs the rules for this network namespace in one transaction; a table of that name is
/// replaced in the same one, so that no packet passes between the old rules and the new. Stays
/// until removed, also after the process ended: sandboxes that live on remain confined.
///
/// A packet that comes in over a sandbox's link
/// - is dropped when its source is outside the range of its family, or when the route back to its
///   source does not lead over that link (another sandbox's address: routes are per link);
/// - is dropped when it is of neighbour or router discovery, or to an IPv6 multicast address: the
///   host learns no neighbour, router or redirect from it;
/// - does not reach any address of this host, unless it answers a connection the host opened, nor
///   a port of such an address that is handed on elsewhere (published ports of containers), but
///   the resolver, and egress control by way of its own table;
/// - does not reach another sandbox outside of their common network (join_network()), link-local
///   addresses (169.254.0.0/16 and fe80::/10), or the other addresses where clouds serve instance
///   metadata, also by way of NAT64;
/// - does not leave for an address of the range that no sandbox has, nor begin another connection
///   when the sandbox has as many as it may;
/// - may go anywhere else, with the source rewritten to the host's.
/// New connections are refused at once (TCP reset, otherwise ICMP "administratively prohibited")
/// rather than dropped, so that programs inside see an error instead of a hang; packets that fit no
/// connection are dropped. Nothing enters a sandbox's link from elsewhere except answers, and what
/// this host itself sends.
///
/// ARP from sandboxes' links is not answered, for it would tell which addresses the host has: both
/// ends of a link need permanent neighbours. ICMP errors carry the host address that the route to
/// the sandbox names as its source, so name one there (net::Route::source).
///
/// All chains accept by default: traffic of others is untouched. For the same reason a drop of
/// others still holds: Docker, for one, sets the policy of iptables' FORWARD chain to drop, and
/// then outbound traffic of sandboxes needs a rule of the administrator there. Forwarding itself
/// (net.ipv4.ip_forward, net.ipv6.conf.all.forwarding) is the caller's to switch on.
///
/// Needs CAP_NET_ADMIN. invalid_argument for a bad name or prefix, otherwise the error names the
/// table and the step the kernel refused.
Status install_firewall(const FirewallOptions& options);

/// Makes a sandbox's link a member of a network: members reach each other. Forgotten when the rules
/// are installed anew. `network` is a number of the caller's choice.
Status join_network(std::string_view table, const std::string& link, std::uint32_t network);
/// Success also when it is no member.
Status leave_network(std::string_view table, const std::string& link, std::uint32_t network);

/// Removes the table with all in it; success also when there is none.
Status remove_firewall(std::string_view table);

/// What is installed, and what it has refused so far.
struct FirewallState {
    std::uint32_t tables = 0;  ///< 2 when installed: families inet and arp
    std::uint32_t chains = 0;
    std::uint32_t rules = 0;
    std::uint64_t denied_packets = 0;
    std::uint64_t denied_bytes = 0;
};

/// All zero when there is no such table.
Result<FirewallState> firewall_state(std::string_view table);

}  // namespace opensandbox::runtime::native
