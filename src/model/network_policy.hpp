#pragma once

#include "model/json_text.hpp"

#include <boost/json/fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What a sandbox may reach (lifecycle 2.1); its meaning is the egress part's (network 1).
namespace opensandbox::model {

struct EgressRule {
    std::string action;  ///< "allow" or "deny"; not checked here
    std::string target;  ///< name, wildcard, address or network; empty: every address, with ports
    std::vector<std::int64_t> ports;  ///< of TCP, in the order they were sent; empty: all
};

struct NetworkPolicy {
    std::optional<std::string> default_action;
    std::vector<EgressRule> egress;
};

/// Of a document that kept the rules of one (create_rules.hpp).
NetworkPolicy read_network_policy(const boost::json::object& checked);

/// camelCase, no nulls, `egress` always there: what a sidecar reads.
std::string to_json(const NetworkPolicy& policy);

}  // namespace opensandbox::model
