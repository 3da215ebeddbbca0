#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::model {

/// Where the agent of a running sandbox listens, seen from the server's host.
struct AgentAddress {
    std::string host;
    std::uint16_t port = 0;  ///< 0 until the runtime has made it
    friend bool operator==(const AgentAddress&, const AgentAddress&) = default;
};

/// How the ports of a sandbox are reached (lifecycle 3.1, 3.3). Empty members are what the runtime
/// does not offer.
struct Endpoints {
    Endpoints() = default;
    Endpoints(AgentAddress a) : agent(std::move(a)) {}  // NOLINT(*-explicit-*): an agent is enough
    AgentAddress agent;
    std::uint16_t http_port = 0;  ///< port of the host that leads to the sandbox's port 8080
    std::string internal_host;    ///< the sandbox's own address, reachable from the server's host
    bool host_network = false;    ///< its ports are the host's
    bool own_address = false;     ///< clients, too, reach every port of it at internal_host
    /// Other ports of the sandbox, each with the host's port that leads to it.
    std::vector<std::pair<std::uint16_t, std::uint16_t>> published;
    std::string egress_token;  ///< OPENSANDBOX-EGRESS-AUTH of its egress API; empty: it has none
    /// Port of the host where the API of many sandboxes answers, this one's under
    /// /sandboxes/{id}; 0: it answers at the sandbox's own port 18080.
    std::uint16_t egress_port = 0;
    friend bool operator==(const Endpoints&, const Endpoints&) = default;
};

}  // namespace opensandbox::model
