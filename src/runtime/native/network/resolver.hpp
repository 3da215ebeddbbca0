#pragma once

#include "base/unique_fd.hpp"
#include "runtime/native/ground/event_loop.hpp"
#include "runtime/native/host/host.hpp"
#include "runtime/native/records/protocol.hpp"

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// UDP and TCP sockets on one port of the gateway, chosen by the kernel, so that other resolvers of
/// the host, or of another server, do not matter.
Result<ResolverSockets> open_resolver_sockets(net::Ipv4Address gateway);

/// The resolver of a server's sandboxes, as the spawner holds it: a process of its own without
/// privileges, since it reads what sandboxes send. It ends with its socket; one that died is
/// replaced. Names of shared networks are told again then.
class Resolver {
  public:
    /// Borrows both.
    Resolver(EventLoop& loop, const Host& host) : loop_(&loop), host_(&host) {}
    ~Resolver();
    Resolver(const Resolver&) = delete;
    Resolver& operator=(const Resolver&) = delete;

    /// Does nothing where the host has no sockets for it.
    Status start();
    void set(NetworkMember member);
    void remove(net::Ipv4Address address);

  private:
    Status start_process(UniqueFd control);
    void end_process();
    void on_end();
    void tell(const NetworkMember& member);

    EventLoop* loop_;
    const Host* host_;
    pid_t pid_ = 0;  ///< 0 also where the uplink's process is its parent
    UniqueFd socket_;
    EventLoop::Watch watch_;
    std::map<std::uint32_t, NetworkMember> members_;
};

/// In the resolver's process: serves until `control` ends. Never returns.
[[noreturn]] void run_resolver(const Host& host, UniqueFd control);

}  // namespace opensandbox::runtime::native
