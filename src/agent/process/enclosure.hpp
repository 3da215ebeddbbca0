#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace opensandbox::agent {

/// The namespaces and limits that a process gets beyond those of the agent.
struct Enclosure {
    std::vector<int> namespaces;     ///< borrowed descriptors, entered in this order
    std::uint64_t capabilities = 0;  ///< all that is kept, a bit for each number
    bool no_new_privileges = true;
    std::vector<sock_filter> filter;  ///< system calls; empty: no filter
    int landlock = -1;                ///< borrowed ruleset; -1: none
};

// For the child that shares the agent's memory: neither allocates. False leaves errno.

/// Nothing that is executed later can have more than `capabilities`. While still privileged.
bool bound_capabilities(const Enclosure& enclosure);
/// Gives up everything else, once the user is the final one.
bool put_up_walls(const Enclosure& enclosure);

}  // namespace opensandbox::agent
