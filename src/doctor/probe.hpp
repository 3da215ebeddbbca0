#pragma once

#include "base/error.hpp"
#include "doctor/facts.hpp"

#include <functional>
#include <string_view>

namespace opensandbox::doctor {

/// Looks at this host. Changes nothing of it: what has to be tried is tried in a child process, in
/// namespaces of its own, and in a scratch directory that is removed. Blocks for some tenths of a
/// second. The caller has one thread.
HostFacts probe_host(const std::filesystem::path& state_directory);

// The parts, for tests.

/// The type of the file system that holds `path`, and whether it is mounted with quotas, from the
/// text of /proc/self/mounts.
struct MountFacts {
    std::string type;
    bool quota = false;
};
MountFacts mount_of(std::string_view mounts, const std::filesystem::path& path);
/// Runs `work` in a forked child and brings back what it said.
Status in_child(const std::function<Status()>& work);

/// Fill in the part of the facts that the name says.
void probe_kernel(HostFacts& facts);
void probe_cgroups(HostFacts& facts);
void probe_network(HostFacts& facts);
void probe_state(HostFacts& facts);

}  // namespace opensandbox::doctor
