#include "runtime/native/network/firewall.hpp"

#include "net/netlink_socket.hpp"
#include "net/nftables.hpp"

#include <linux/netlink.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

namespace opensandbox::runtime::native {

namespace {

using net::Ipv4Address;
using net::nft::Family;
using net::nft::Hook;
using net::nft::Rule;

constexpr std::string_view kDenied = "denied";
constexpr std::string_view kRefuseChain = "refuse";
constexpr std::string_view kSharedChain = "shared";
constexpr std::string_view kNetworksMap = "networks";
constexpr std::string_view kMembersSet = "members";
constexpr std::string_view kConnectionsSet = "connections";
constexpr std::uint16_t kDnsPort = 53;
constexpr std::uint32_t kMostLinks = 65'536;

/// Before connection tracking (-200), so that forged packets leave no entry.
constexpr std::int32_t kBeforeTracking = -310;
/// Just before the usual filters (0), so that refusals are ours to word.
constexpr std::int32_t kBeforeFilters = -5;
/// Where destination translation belongs.
constexpr std::int32_t kDestinationTranslation = -100;
/// Where source translation belongs.
constexpr std::int32_t kSourceTranslation = 100;

struct Block {
    Ipv4Address network;
    unsigned prefix;
};

/// Where clouds serve credentials to whoever asks from the machine.
const std::array kMetadataServices = {
    Block{Ipv4Address({169, 254, 0, 0}), 16},
    Block{Ipv4Address({100, 100, 100, 200}), 32},
};

struct Block6 {
    const char* network;
    unsigned prefix;
};

constexpr std::array kMetadataServices6 = {
    Block6{"fe80::", 10},
    Block6{"fd00:ec2::254", 128},       // Amazon
    Block6{"fd20:ce::254", 128},        // Google
    Block6{"fd00:c1::a9fe:a9fe", 128},  // Oracle
    Block6{"fd00:42::42", 128},         // Scaleway
    Block6{"64:ff9b::a9fe:0", 112},     // 169.254.0.0/16 through NAT64
    Block6{"64:ff9b::6464:64c8", 128},  // 100.100.100.200 likewise
};

// Of ICMPv6 (RFC 4861, 3810).
constexpr std::uint8_t kFirstOfDiscovery = 133;
constexpr std::uint8_t kLastOfDiscovery = 137;
constexpr std::uint8_t kMulticastReport = 143;

Status check_options(const FirewallOptions& options) {
    const bool plain = std::ranges::all_of(options.table, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
    if (options.table.empty() || options.table.size() > 255 || !plain)
        return Error(ErrorCode::invalid_argument,
                     "firewall table \"" + options.table +
                         "\": must be 1 to 255 letters, digits or underscores");
    if (options.interface_prefix.empty() || options.interface_prefix.size() > 14)
        return Error(ErrorCode::invalid_argument, "firewall interface prefix \"" +
                                                      options.interface_prefix +
                                                      "\": must be 1 to 14 bytes");
    return {};
}

/// The rules of one family's table, in the order they are written.
class Table {
  public:
    Table(net::nft::Transaction& transaction, Family family, const std::string& name)
        : transaction_(transaction), family_(family), name_(name) {
        // Adding first lets the deletion succeed whether or not there was one.
        transaction_.add_table(family_, name_);
        transaction_.delete_table(family_, name_);
        transaction_.add_table(family_, name_);
    }

    void counter(std::string_view counter) { transaction_.add_counter(family_, name_, counter); }
    void set(std::string_view name, net::nft::SetKind kind) {
        transaction_.add_set(family_, name_, name, kind);
    }
    void set(std::string_view name, const net::nft::SetLayout& layout) {
        transaction_.add_set(family_, name_, name, layout);
    }
    void chain(std::string_view chain) {
        chain_ = chain;
        transaction_.add_chain(family_, name_, chain);
    }
    void base_chain(std::string_view chain, const char* type, Hook hook, std::int32_t priority) {
        chain_ = chain;
        transaction_.add_base_chain(family_, name_, chain, type, hook, priority);
    }
    /// To the chain named last.
    void rule(const Rule& rule) { transaction_.add_rule(family_, name_, chain_, rule); }

  private:
    net::nft::Transaction& transaction_;
    Family family_;
    const std::string& name_;
    std::string chain_;
};

/// Refuses at once, with an error that the program inside sees.
void write_refuse_chain(Table& table) {
    table.chain(kRefuseChain);
    table.rule(Rule().count(kDenied).transport(IPPROTO_TCP).reject_with_reset());
    table.rule(Rule().reject_as_prohibited());
}

/// Between sandboxes: only members of the same network reach each other.
void write_shared_chain(Table& table) {
    table.chain(kSharedChain);
    table.rule(Rule().clear_mark());
    table.rule(Rule().mark_with_network(kNetworksMap));
    table.rule(Rule().to_member_of_marked(kMembersSet).clear_mark().accept());
    table.rule(Rule().clear_mark().go_to(kRefuseChain));
}

/// Forged sources, and what would teach this host neighbours and routers.
void write_prerouting6(Table& table, const FirewallOptions& options) {
    if (!options.range6) {
        table.rule(Rule().is_ipv6().count(kDenied).drop());
        return;
    }
    // Every kernel tells its neighbours what it listens to: nobody's misdeed.
    table.rule(Rule().is_ipv6().transport(IPPROTO_ICMPV6).icmp_type(kMulticastReport).drop());
    table.rule(Rule()
                   .is_ipv6()
                   .source(options.range6->network(), options.range6->prefix(), false)
                   .count(kDenied)
                   .drop());
    for (std::uint8_t type = kFirstOfDiscovery; type <= kLastOfDiscovery; ++type) {
        table.rule(
            Rule().is_ipv6().transport(IPPROTO_ICMPV6).icmp_type(type).count(kDenied).drop());
    }
    const auto multicast = boost::asio::ip::make_address_v6("ff00::");
    table.rule(Rule().is_ipv6().destination(multicast, 8).count(kDenied).drop());
}

void write_prerouting(Table& table, const FirewallOptions& options) {
    table.base_chain("prerouting", "filter", Hook::prerouting, kBeforeTracking);
    table.rule(Rule().not_from_interfaces(options.interface_prefix).accept());
    write_prerouting6(table, options);
    table.rule(Rule()
                   .is_ipv4()
                   .source(options.range.network(), options.range.prefix(), false)
                   .count(kDenied)
                   .drop());
    table.rule(Rule().source_not_routed_back().count(kDenied).drop());
}

/// The host has one table of connections for all.
void limit_connections(Table& table, const FirewallOptions& options) {
    if (options.connections == 0) return;
    table.rule(Rule()
                   .from_interfaces(options.interface_prefix)
                   .begins_connection()
                   .more_connections(net::nft::KeyPart::Source::incoming_link, kConnectionsSet,
                                     options.connections)
                   .go_to(kRefuseChain));
}

/// What is meant for this host itself, by whichever of its addresses.
void write_input(Table& table, const FirewallOptions& options) {
    table.base_chain("input", "filter", Hook::input, kBeforeFilters);
    table.rule(Rule().not_from_interfaces(options.interface_prefix).accept());
    table.rule(Rule().connection(net::nft::established | net::nft::related).accept());
    // A reset in answer to a packet out of its window would end the host's own connection.
    table.rule(Rule().connection(net::nft::invalid).count(kDenied).drop());
    limit_connections(table, options);
    if (options.resolver_port != 0) {
        for (const std::uint8_t protocol : {IPPROTO_UDP, IPPROTO_TCP}) {
            table.rule(Rule()
                           .is_ipv4()
                           .destination(options.range.address(1), 32)
                           .transport(protocol)
                           .destination_port(options.resolver_port)
                           .accept());
        }
    }
    for (const std::uint16_t port : options.egress_ports) {
        for (const std::uint8_t protocol : {IPPROTO_UDP, IPPROTO_TCP}) {
            table.rule(Rule()
                           .transport(protocol)
                           .destination_port(port)
                           .destination_translated()
                           .accept());
        }
    }
    table.rule(Rule().go_to(kRefuseChain));
}

/// Queries for names go to our own resolver, which listens where no other does.
void write_redirection(Table& table, const FirewallOptions& options) {
    if (options.resolver_port == 0) return;
    table.base_chain("redirect", "nat", Hook::prerouting, kDestinationTranslation);
    for (const std::uint8_t protocol : {IPPROTO_UDP, IPPROTO_TCP}) {
        table.rule(Rule()
                       .from_interfaces(options.interface_prefix)
                       .is_ipv4()
                       .destination(options.range.address(1), 32)
                       .transport(protocol)
                       .destination_port(kDnsPort)
                       .translate_destination(options.range.address(1), options.resolver_port));
    }
}

void write_forward(Table& table, const FirewallOptions& options) {
    const auto& prefix = options.interface_prefix;
    table.base_chain("forward", "filter", Hook::forward, kBeforeFilters);
    table.rule(Rule().from_interfaces(prefix).connection(net::nft::invalid).count(kDenied).drop());
    limit_connections(table, options);
    table.rule(Rule().from_interfaces(prefix).to_interfaces(prefix).go_to(kSharedChain));
    table.rule(Rule()
                   .to_interfaces(prefix)
                   .connection(net::nft::established | net::nft::related)
                   .accept());
    table.rule(Rule().to_interfaces(prefix).count(kDenied).drop());
    table.rule(Rule().not_from_interfaces(prefix).accept());
    // Addresses that no sandbox has would follow the way out, to whoever has them there.
    table.rule(Rule()
                   .is_ipv4()
                   .destination(options.range.network(), options.range.prefix())
                   .go_to(kRefuseChain));
    if (options.range6) {
        table.rule(Rule()
                       .is_ipv6()
                       .destination(options.range6->network(), options.range6->prefix())
                       .go_to(kRefuseChain));
    }
    for (const auto& block : kMetadataServices)
        table.rule(Rule().is_ipv4().destination(block.network, block.prefix).go_to(kRefuseChain));
    for (const auto& block : kMetadataServices6) {
        const auto network = boost::asio::ip::make_address_v6(block.network);
        table.rule(Rule().is_ipv6().destination(network, block.prefix).go_to(kRefuseChain));
    }
    // Meant for an address of this host, which hands the port on, to a container for one.
    table.rule(Rule().connection(net::nft::fresh).destination_translated().go_to(kRefuseChain));
}

void write_postrouting(Table& table, const FirewallOptions& options) {
    using namespace std::string_view_literals;
    table.base_chain("postrouting", "nat", Hook::postrouting, kSourceTranslation);
    table.rule(Rule()
                   .is_ipv4()
                   .source(options.range.network(), options.range.prefix())
                   .not_to_interfaces(options.interface_prefix)
                   .not_to_interfaces("lo\0"sv)
                   .masquerade());
    if (!options.range6) return;
    table.rule(Rule()
                   .is_ipv6()
                   .source(options.range6->network(), options.range6->prefix())
                   .not_to_interfaces(options.interface_prefix)
                   .not_to_interfaces("lo\0"sv)
                   .masquerade());
}

}  // namespace

Status install_firewall(const FirewallOptions& options) {
    if (auto checked = check_options(options); !checked) return checked;
    auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER);
    if (!socket) return socket.error();

    net::nft::Transaction transaction;
    Table table(transaction, Family::inet, options.table);
    table.counter(kDenied);
    table.set(kNetworksMap, net::nft::SetKind::networks);
    table.set(kMembersSet, net::nft::SetKind::members);
    if (options.connections != 0) {
        net::nft::SetLayout counted({net::nft::KeyField::link_name});
        counted.dynamic = true;
        counted.size = kMostLinks;
        table.set(kConnectionsSet, counted);
    }
    write_refuse_chain(table);
    write_shared_chain(table);
    write_prerouting(table, options);
    write_redirection(table, options);
    write_input(table, options);
    write_forward(table, options);
    write_postrouting(table, options);

    // Whoever answers ARP tells which addresses this host has, and learns junk neighbours.
    Table arp(transaction, Family::arp, options.table);
    arp.base_chain("input", "filter", Hook::arp_input, 0);
    arp.rule(Rule().from_interfaces(options.interface_prefix).drop());

    auto committed = transaction.commit(*socket);
    if (!committed) return committed.error().within("install firewall \"" + options.table + "\"");
    return {};
}

Status join_network(std::string_view table, const std::string& link, std::uint32_t network) {
    auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER);
    if (!socket) return socket.error();
    net::nft::Transaction transaction;
    using net::nft::SetKind;
    transaction.add_element(Family::inet, table, kNetworksMap, SetKind::networks, {link, network});
    transaction.add_element(Family::inet, table, kMembersSet, SetKind::members, {link, network});
    return transaction.commit(*socket);
}

Status leave_network(std::string_view table, const std::string& link, std::uint32_t network) {
    auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER);
    if (!socket) return socket.error();
    net::nft::Transaction transaction;
    using net::nft::SetKind;
    transaction.delete_element(Family::inet, table, kNetworksMap, SetKind::networks,
                               {link, network});
    transaction.delete_element(Family::inet, table, kMembersSet, SetKind::members, {link, network});
    auto left = transaction.commit(*socket);
    if (!left && left.error().code() == ErrorCode::not_found) return {};
    return left;
}

Status remove_firewall(std::string_view name) {
    auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER);
    if (!socket) return socket.error();
    net::nft::Transaction transaction;
    for (const auto family : {Family::inet, Family::arp}) {
        transaction.add_table(family, name);
        transaction.delete_table(family, name);
    }
    auto committed = transaction.commit(*socket);
    if (!committed)
        return committed.error().within("remove firewall \"" + std::string(name) + "\"");
    return {};
}

Result<FirewallState> firewall_state(std::string_view name) {
    auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER);
    if (!socket) return socket.error();
    const auto counts = net::nft::count_table(*socket, name);
    if (!counts) return counts.error();
    FirewallState state;
    state.tables = counts->tables;
    state.chains = counts->chains;
    state.rules = counts->rules;
    if (counts->tables == 0) return state;
    const auto counter = net::nft::read_counter(*socket, Family::inet, name, kDenied);
    if (!counter) return counter.error();
    state.denied_packets = counter->packets;
    state.denied_bytes = counter->bytes;
    return state;
}

}  // namespace opensandbox::runtime::native
