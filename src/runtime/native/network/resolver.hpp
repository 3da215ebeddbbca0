#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "net/ipv4_range.hpp"
#include "runtime/native/ground/event_loop.hpp"
#include "runtime/native/network/resolver_sockets.hpp"
#include "runtime/native/network/uplink.hpp"
#include "runtime/native/records/protocol.hpp"

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// The resolver of a server's sandboxes, as the spawner holds it: a process of its own without
/// privileges, since it reads what sandboxes send. It ends with its socket; one that died is
/// replaced. Names of shared networks are told again then.
class Resolver {
  public:
    /// Borrows all but the range, which is that of the sandboxes. Where there is an uplink, its
    /// process starts the resolver.
    Resolver(EventLoop& loop, const Uplink& uplink, const ResolverSockets& sockets,
             net::Ipv4Range range)
        : loop_(&loop), uplink_(&uplink), sockets_(&sockets), range_(range) {}
    ~Resolver();
    Resolver(const Resolver&) = delete;
    Resolver& operator=(const Resolver&) = delete;

    /// Does nothing where there are no sockets for it.
    Status start();
    void set(NetworkMember member);
    void remove(net::Ipv4Address address);

  private:
    Status start_process(UniqueFd control);
    void end_process();
    void on_end();
    void tell(const NetworkMember& member);

    EventLoop* loop_;
    const Uplink* uplink_;
    const ResolverSockets* sockets_;
    net::Ipv4Range range_;
    pid_t pid_ = 0;  ///< 0 also where the uplink's process is its parent
    UniqueFd socket_;
    EventLoop::Watch watch_;
    std::map<std::uint32_t, NetworkMember> members_;
};

}  // namespace opensandbox::runtime::native
