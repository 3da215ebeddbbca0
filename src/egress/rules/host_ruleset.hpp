#pragma once

#include "egress/rules/rule_writer.hpp"
#include "net/nftables.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace opensandbox::egress::rules {

/// Where a host keeps watch over its sandboxes, and whereto it sends their queries.
struct HostOptions {
    std::string table;  ///< of families inet and arp; 1 to 255 bytes, [A-Za-z0-9_]
    /// Addresses of this host that sandboxes reach without leaving it (on the loopback link);
    /// queries to any server go to `dns_port` of that of their family. Without one, queries of that
    /// family are judged as all else.
    std::optional<net::Ipv4Address> gateway4;
    std::optional<net::Ipv6Address> gateway6;
    std::uint16_t dns_port = 0;
    /// Of the gateways: where the interceptor listens; 0: none.
    std::uint16_t interceptor_port = 0;
    /// How many connections a sandbox may have at once; the kernel's table of them is shared by
    /// all. At least 1.
    std::uint32_t connections = 4096;
    LogLimits log;
};

/// The part of the host's table that does not depend on sandboxes and policies. Only packets that
/// come by the links in `kLinks` are judged:
/// - before connection tracking, sources other than the sandbox's own addresses are dropped, as are
///   neighbour and router discovery, multicast and (table of family arp) ARP: both ends of a link
///   need permanent neighbours;
/// - queries for names and what is to be intercepted is sent to this host's own services;
/// - this host is reached only through those, and by answers to what it opened;
/// - what is forwarded is judged by the policy's chain, which the map `kPolicies` names. Without
/// one
///   it is refused.
/// Refusals are quick: TCP gets a reset, the rest an ICMP error.
class HostRuleset {
  public:
    explicit HostRuleset(const HostOptions& options) : options_(options) {}

    /// Sets, and chains of this part with their rules, in place of those that are there. The tables
    /// exist.
    void write(net::nft::Transaction& transaction) const;

    // Names and shapes of the sets.
    static constexpr const char* kLinks = "links";
    static constexpr const char* kQuarantined = "quarantined";
    static const char* sources(bool v6) { return v6 ? "sources6" : "sources4"; }
    static constexpr const char* kPolicies = "policies";
    static constexpr const char* kDiversions = "diversions";
    /// Counts what was dropped for its source.
    static constexpr const char* kSpoofedCounter = "spoofed";
    /// Of their entries in the log.
    static constexpr const char* kSpoofedPrefix = "egress-spoofed";
    static net::nft::SetLayout link_layout();
    static net::nft::SetLayout source_layout(bool v6);
    static net::nft::SetLayout verdict_layout();
    static constexpr LearnedSets kLearnedSets{true};

    /// A chain of this name says that the table has these shapes.
    static constexpr const char* kVersionChain = "version_1";

  private:
    void write_sets(RuleWriter& writer) const;
    void write_prerouting(RuleWriter& writer) const;
    void write_translation(RuleWriter& writer) const;
    void write_input(RuleWriter& writer) const;
    void write_forward(RuleWriter& writer) const;
    void write_arp(net::nft::Transaction& transaction) const;

    const HostOptions& options_;
};

}  // namespace opensandbox::egress::rules
