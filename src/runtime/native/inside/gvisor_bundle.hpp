#pragma once

#include "runtime/native/records/protocol.hpp"

#include <string>

/// A sandbox as the OCI bundle that gVisor's `runsc` runs. All paths are those of a slot's own
/// tree.
namespace opensandbox::runtime::native {

/// Where a volume of the host is attached for runsc: by its place in the request.
std::string gvisor_volume_path(std::size_t number);

/// Where the agent's executable is attached for runsc.
inline constexpr const char* kGvisorAgentSource = "/agent";

/// The network namespace that gVisor takes over.
inline constexpr const char* kGvisorNetworkPath = "/net";

/// The text of config.json: the root is /new, the names are in /files. The agent starts as the
/// hidden role `guest` with as much right as a native sandbox's, and none of gVisor's is asked for
/// beyond its defaults.
std::string format_bundle(const CreateRequest& request);

}  // namespace opensandbox::runtime::native
