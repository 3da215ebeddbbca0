#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <filesystem>
#include <string>

/// gVisor's program on this host.
namespace opensandbox::runtime::native {

/// A path, or a name as find_host_program() finds it. `not_found` when there is none, `unsupported`
/// says what is wrong with the one that is there.
Result<std::filesystem::path> find_gvisor(const std::string& name);

/// Why sandboxes cannot be run with it; success when nothing speaks against it: it must be an
/// executable of everybody, since slots are nobody on the host, and must not need a dynamic linker,
/// since it starts itself anew where no file of the host is.
Status check_gvisor(const std::filesystem::path& program);

/// What a slot runs, which sees no tree of the host.
struct GvisorPrograms {
    UniqueFd runsc;
    UniqueFd agent;  ///< a mount of keep_agent(), attached nowhere yet
};

/// Keeps a copy of this executable, which everybody may run, in this directory: the executable
/// itself may be replaced while slots are made.
Status keep_agent(const std::filesystem::path& directory);
Result<GvisorPrograms> open_gvisor_programs(const std::filesystem::path& runsc,
                                            const std::filesystem::path& directory);

}  // namespace opensandbox::runtime::native
