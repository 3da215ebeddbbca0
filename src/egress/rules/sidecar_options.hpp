#pragma once

#include "base/error.hpp"
#include "egress/rules/rule_writer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::egress::rules {

/// A control group of the unified hierarchy, as the packet filter knows it.
struct ControlGroup {
    std::uint64_t id = 0;     ///< inode number of its folder
    std::uint32_t level = 0;  ///< how deep it is under the root that this process sees
};

/// The group of this process, seen from the root of the hierarchy that it sees, as Linux 6.11
/// counts levels. not_found where there is no unified hierarchy, or this process is in its very
/// root, which every process is under.
Result<ControlGroup> own_control_group();

/// How the table in a sandbox's own network namespace knows what is the sidecar's.
struct OwnTraffic {
    /// Of its sockets (SO_MARK): the contract's.
    std::uint32_t mark = 1;
    /// That its sockets were made in. A mark alone can be set by whoever has CAP_NET_RAW or
    /// CAP_NET_ADMIN; the group cannot be forged without write access to the hierarchy.
    std::optional<ControlGroup> group;
};

/// Egress control from within a sandbox's network namespace (network contract 1.5 and 1.6).
struct SidecarOptions {
    std::string table = "opensandbox";
    std::uint16_t dns_port = 15353;          ///< of 127.0.0.1 and ::1
    std::uint16_t interceptor_port = 18081;  ///< likewise
    OwnTraffic own;
    /// Servers for names that the sandbox may ask directly, on port 53 and no other.
    std::vector<IpAddress> exempt_nameservers;
    /// Links whose frames are judged one by one, besides packets: all but the loopback link, so
    /// that raw frames do not get out. See SidecarTable::stops_raw_frames().
    std::vector<std::string> links;
    /// How many connections the sandbox may have at once.
    std::uint32_t connections = 16384;
    /// Whether datagrams from outside may begin a conversation. Without, an answer to them is
    /// nobody's way around a revoked permission.
    bool accept_datagrams = false;
    LogLimits log;
};

/// Names of the links of this network namespace but for loopback ones.
Result<std::vector<std::string>> outer_links();

}  // namespace opensandbox::egress::rules
