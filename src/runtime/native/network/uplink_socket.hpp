#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "runtime/native/records/spawner_options.hpp"

/// Where spawners find the network namespace of a server's sandboxes: whoever connects is greeted
/// with a name and a descriptor of it. kSpawnerProgram is an uplink's process of this version; any
/// other only gives the namespace, and ends on request.
namespace opensandbox::runtime::native {

/// A non-blocking listener at uplink_socket_path(), in place of an earlier one.
Result<UniqueFd> listen_for_spawners(const SpawnerOptions& options);

/// For a spawner whose uplink's process is gone: a child that does nothing but hold the namespace
/// that it is in until a spawner took it, or a minute is over.
Status hold_network_namespace(const SpawnerOptions& options);

}  // namespace opensandbox::runtime::native
