#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "net/ipv4_range.hpp"
#include "net/ipv6_range.hpp"
#include "runtime/native/ground/confinement/cgroup.hpp"
#include "runtime/native/network/egress_sockets.hpp"
#include "runtime/native/network/gateway_addresses.hpp"
#include "runtime/native/network/resolver_sockets.hpp"
#include "runtime/native/network/uplink.hpp"
#include "runtime/native/records/names.hpp"
#include "runtime/native/records/protocol.hpp"
#include "runtime/native/records/spawner_options.hpp"

#include <linux/filter.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// The IPv6 network of the server with this tag, unless another was chosen.
net::Ipv6Range own_range6(const std::string& tag);

/// What spawner and workers know about this host; of it slots learn their SlotTerms. Immutable once
/// made.
struct Host {
    SpawnerOptions options;
    net::Ipv4Range range;
    std::optional<net::Ipv6Range> range6;  ///< none: sandboxes have no IPv6
    bool ipv6_links = false;               ///< links have IPv6 unless it is kept from them
    std::string tag;  ///< six hex digits, from the state directory: tells servers apart
    CgroupTree cgroups;
    bool shift_ids = true;  ///< every slot has its own id range; false only where nothing can shift
    bool shift_usr = true;  ///< the host's /usr can be shifted, too
    std::vector<sock_filter> filter;  ///< system call filter of the sandboxes
    std::string resolver;             ///< text for /etc/resolv.conf inside
    ResolverSockets resolver_sockets;
    EgressSockets egress_sockets;
    Uplink uplink;               ///< of an ordinary user's server, where it has one
    bool linked = true;          ///< sandboxes have a link to this network namespace
    std::uint32_t mtu = 1500;    ///< of links: that of the host's way out
    std::uint32_t ids = 65'536;  ///< of a slot; fewer where this user has fewer
    /// What sandboxes go without here, a phrase each: for the server's log and for diagnostics.
    std::vector<std::string> off;

    /// Prefix of our links, 9 characters.
    [[nodiscard]] std::string link_prefix() const { return native::link_prefix(tag); }
    [[nodiscard]] std::string link_name(SlotId slot) const;
    [[nodiscard]] std::string firewall_table() const { return "opensandbox_" + tag; }
    /// Of egress control; kept by the enforcer.
    [[nodiscard]] std::string egress_table() const { return firewall_table() + "_egress"; }
    [[nodiscard]] std::string cgroup_group() const { return native::cgroup_group(tag); }
    [[nodiscard]] std::filesystem::path slot_directory(SlotId slot) const;
    /// Whether sandboxes run on gVisor's kernel.
    [[nodiscard]] bool gvisor() const { return !options.runsc.empty(); }
    /// Whether slots have a link to this host.
    [[nodiscard]] bool network() const { return linked; }
    /// A TCP socket that clients of this host reach (listen_on()), wherever this process is.
    [[nodiscard]] Result<UniqueFd> listen(const std::string& host, std::uint16_t& port) const;
    [[nodiscard]] net::Ipv4Address gateway() const { return range.address(1); }
    [[nodiscard]] net::Ipv4Address address(SlotId slot) const {
        return range.address(slot.index + 2);
    }
    /// Of the gateway where there is IPv6, and of a slot.
    [[nodiscard]] net::Ipv6Address gateway6() const { return range6->address(1); }
    [[nodiscard]] std::optional<net::Ipv6Address> address6(SlotId slot) const {
        if (!range6) return std::nullopt;
        return range6->address(slot.index + 2);
    }
    /// What the host's loopback has of it.
    [[nodiscard]] Gateways gateways() const;
    /// How many slots can exist at once.
    [[nodiscard]] std::uint32_t capacity() const;
    /// First host id of a slot's 65,536.
    [[nodiscard]] std::uint32_t id_base(SlotId slot) const;
    /// Users that may make a slot's namespaces, the best first: a slot's alone, as far as this
    /// namespace has so many.
    [[nodiscard]] std::array<std::uint32_t, 2> makers(SlotId slot) const;
};

/// Makes this host ready: directories, cgroups, gateway address, forwarding, firewall, and finds
/// out what its file systems can do. Each step is safe to repeat.
Result<Host> prepare_host(const SpawnerOptions& options);
/// Undoes it; what another spawner needs stays.
void unprepare_host(Host& host);

}  // namespace opensandbox::runtime::native
