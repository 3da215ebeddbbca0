#pragma once

#include "base/error.hpp"
#include "net/netlink_socket.hpp"
#include "net/route_changes.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::net {

/// Names another network namespace, by a descriptor of it or by a process inside. The descriptor is
/// borrowed.
class NetworkNamespace {
  public:
    static NetworkNamespace of_descriptor(int fd) { return {true, fd}; }
    static NetworkNamespace of_process(pid_t pid) { return {false, pid}; }

    [[nodiscard]] bool by_descriptor() const { return by_descriptor_; }
    [[nodiscard]] int value() const { return value_; }

  private:
    NetworkNamespace(bool by_descriptor, int value)
        : by_descriptor_(by_descriptor), value_(value) {}

    bool by_descriptor_;
    int value_;
};

/// A pair of virtual Ethernet ends, one here and one in another network namespace. Deleting either
/// end deletes both; so does the end of the peer's namespace, but later: the kernel takes
/// namespaces down asynchronously, so a host name is not free again at once.
struct VethPair {
    std::string host_name;  ///< 1 to 15 bytes, unique in this namespace
    MacAddress host_mac;
    std::string peer_name;
    MacAddress peer_mac;
    NetworkNamespace peer_namespace;
    std::uint32_t mtu = 1500;
};

/// A network link as listed.
struct Link {
    int index;
    std::string name;
};

/// Changes links, addresses, routes and neighbours of the network namespace it was opened in
/// (rtnetlink), also after the thread moved to another one. Synchronous: a call returns when the
/// kernel has done it, usually in 20 to 1000 us. Needs CAP_NET_ADMIN over that namespace except for
/// reading. Errors name the operation and the link, and carry the kernel's own explanation when it
/// gave one. Not thread-safe.
class RouteSocket {
  public:
    static Result<RouteSocket> open();

    /// Creates both ends with the host's end up; the peer appears in its namespace down, since the
    /// kernel refuses to raise it from here. Returns the index of the host's end. conflict when the
    /// host name is taken, not_found or io when the namespace is gone.
    Result<int> create_veth(const VethPair& pair);

    /// not_found when there is no such link.
    Result<int> link_index(std::string_view name);
    /// Every link whose name begins with `prefix`.
    Result<std::vector<Link>> list_links(std::string_view prefix);
    /// A route of the main table names this address as the source of what leaves by it.
    Result<bool> sends_from(const IpAddress& address);
    Status set_up(int link);
    /// Takes its routes with it; the other end of a pair loses its carrier.
    Status set_down(int link);
    /// What leaves by this link is held back to so many bytes a second, in queue of at most 50 ms
    /// (a token bucket, tc-tbf(8)). Replaces an earlier limit. `unsupported` where the kernel has
    /// none.
    Status limit_rate(int link, std::uint64_t bytes_per_second);
    /// Success also when the link is already gone.
    Status delete_link(int link);
    Status delete_link(std::string_view name);

    /// Makes all of the changes in one system call. The first that was refused is told; the kernel
    /// has tried those after it, too.
    Status apply(const RouteChanges& changes);

    // One change each, as RouteChanges describes them.
    Status add_address(int link, const IpAddress& address, unsigned prefix);
    /// Success also when the link, or the address on it, is gone.
    Status delete_address(int link, const IpAddress& address, unsigned prefix);
    Status add_route(const Route& route);
    Status add_default_route(int link, const IpAddress& gateway);
    Status add_neighbour(int link, const IpAddress& address, const MacAddress& mac);

  private:
    explicit RouteSocket(NetlinkSocket socket) : socket_(std::move(socket)) {}

    Status change(NetlinkMessage& message, std::string_view what);

    NetlinkSocket socket_;
};

/// Reads an RTM_NEWLINK message; empty when it is another one or malformed.
std::optional<Link> parse_link(NetlinkBytes message);
/// The preferred source of a route of the main table, from an RTM_NEWROUTE message; empty when it
/// is another message, malformed, or names none.
std::optional<IpAddress> route_source(NetlinkBytes message);

}  // namespace opensandbox::net
