#pragma once

#include "base/unique_fd.hpp"

#include <linux/filter.h>

#include <cstdint>
#include <vector>

/// Where an agent may make no namespaces, a process beside it in the same sandbox does, with rights
/// that none of the sandbox's own processes have: the broker. The agent passes requests for
/// /v1/isolated on to it.
namespace opensandbox::agent {

struct BrokerOptions {
    UniqueFd listener;  ///< a socket that only the agent can connect to
    /// What processes of sessions are confined to, whatever their profile: those of the sandbox.
    std::vector<sock_filter> filter;
    std::uint64_t capabilities = 0;
};

/// Serves the agent until SIGTERM; returns the exit code. The calling process must have no other
/// threads. What comes from the agent is not trusted. Never throws.
int run_broker(BrokerOptions options);

}  // namespace opensandbox::agent
