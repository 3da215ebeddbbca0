#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "net/ipv4_range.hpp"
#include "runtime/native/records/spawner_options.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace opensandbox::runtime::native {

/// How the sandboxes of an ordinary user's server have a network. The spawner, the links and the
/// firewall live in a network namespace of the server's own, where it may do what root's server
/// does on the host. A process beside it, the uplink's, stays in the host's: it runs pasta, which
/// connects the two, and does for the spawner what only works there. It keeps the namespace alive
/// until no spawner comes back and no sandbox lives, so that links outlive a spawner.
class Uplink {
  public:
    /// None: sandboxes have their loopback only.
    Uplink() = default;

    /// Moves this process, which must have one thread, into the network namespace of the server's
    /// sandboxes, which is made, with the uplink's process, unless they are there. On failure the
    /// process stays where it is, and nothing is left; the message says what the host lacks.
    static Result<Uplink> enter(const SpawnerOptions& options);

    [[nodiscard]] explicit operator bool() const { return static_cast<bool>(socket_); }
    /// The host had a way out for IPv6 when this was made.
    [[nodiscard]] bool ipv6() const { return ipv6_; }
    /// Readable once the uplink's process is gone: another can only be had by another spawner.
    [[nodiscard]] int descriptor() const { return socket_.get(); }

    /// listen_on() in the host's network namespace.
    [[nodiscard]] Result<UniqueFd> listen(const std::string& host, std::uint16_t& port) const;
    /// Starts a resolver for these sockets that asks the host's servers as a process of the host;
    /// it ends with `control`. All three are borrowed.
    [[nodiscard]] Status start_resolver(const net::Ipv4Range& range, int control, int udp,
                                        int tcp) const;
    /// Ends the uplink's process, and pasta with it. For a spawner that leaves no sandbox.
    void end();

  private:
    UniqueFd socket_;
    bool ipv6_ = false;
};

/// Where the uplink's process of a server is found.
std::filesystem::path uplink_socket_path(const SpawnerOptions& options);

/// The hidden role `uplink`: connects an ordinary user's sandboxes with the world, started by the
/// spawner, outlives it while sandboxes live.
int uplink_main(int argc, char** argv);

/// Serves the spawner at `first` and those after it, until told to end or nobody needs it. To be
/// called in a process of its own, in the host's network namespace. `first` brings the namespace.
int serve_uplink(const SpawnerOptions& options, UniqueFd first);

/// Installs, in this network namespace, what may leave by its uplink; the table is replaced in one
/// transaction. pasta speaks through sockets of the host: whatever they would deliver to the host
/// itself is refused here at once, also when it comes from a process of this namespace. `host` are
/// the host's addresses; besides, link-local ones, the host's loopback in its IPv6 guise
/// (::ffff:0.0.0.0/96) and 0.0.0.0/8 never leave. What comes by the uplink for this
/// namespace itself and is invalid to connection tracking is dropped without an answer.
Status install_uplink_firewall(const std::string& table,
                               const std::set<boost::asio::ip::address>& host);

}  // namespace opensandbox::runtime::native
