#pragma once

#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// What becomes of connections to one target.
struct NetworkRule {
    std::string action;  ///< "allow" or "deny"
    /// "example.com", "*.example.com", an address or a block of addresses; empty, with ports: every
    /// address.
    std::string target;
    /// TCP ports from 1 to 65535 that it is limited to, at most 256; empty: all. Only of addresses
    /// and blocks; a name has its port behind it ("example.com:443").
    std::vector<std::int64_t> ports;
};

/// What a sandbox may reach. The first rule that fits decides.
struct NetworkPolicy {
    std::string default_action;  ///< "allow" or "deny": what no rule names
    std::vector<NetworkRule> egress;
};

/// How a policy is in force, as far as the sandbox's egress control says; texts may be empty.
struct EgressStatus {
    NetworkPolicy policy;          ///< only of Egress::get
    std::string mode;              ///< "allow_all", "deny_all" or "enforcing"
    std::string enforcement_mode;  ///< "dns" or "dns+nft"
    std::string reason;            ///< such as "no matching targets found"
};

/// The network policy of one sandbox while it runs. Cheap to copy. All calls fail with `not_found`
/// or `bad_gateway` when the sandbox has no egress control: it was created without a policy.
class Egress {
  public:
    Egress(Connection connection, std::string sandbox_id)
        : connection_(std::move(connection)), id_(std::move(sandbox_id)) {}

    boost::asio::awaitable<Result<EgressStatus>> get() const;
    /// Puts rules before those that are there; one with the same target and ports is replaced. At
    /// least one.
    boost::asio::awaitable<Result<EgressStatus>> patch(std::vector<NetworkRule> rules) const;
    /// Takes the rules with these targets away; "ports=80,443" is one without a target. At least
    /// one; unknown ones are passed over.
    boost::asio::awaitable<Result<EgressStatus>> remove(std::vector<std::string> targets) const;
    /// Sets a whole new policy.
    boost::asio::awaitable<Result<EgressStatus>> replace(NetworkPolicy policy) const;

  private:
    Connection connection_;
    std::string id_;
};

}  // namespace opensandbox::sdk
