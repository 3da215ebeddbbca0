#pragma once

#include "agent/process/enclosure.hpp"
#include "base/error.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// The user that a process runs as.
struct Credentials {
    uid_t uid;
    gid_t gid;
    std::vector<gid_t> groups;  ///< all supplementary groups
};

/// A program that may be there: its arguments and where to look for it, in order.
struct Program {
    std::vector<std::string> argv;
    std::vector<std::string> paths;
};

/// What to start.
struct SpawnRequest {
    std::vector<Program> programs;           ///< the first one that exists is started
    std::vector<std::string> environment;    ///< "NAME=value"
    std::string directory;                   ///< empty: the agent's own
    std::optional<Credentials> credentials;  ///< empty: the agent's own, unchanged
    /// Borrowed descriptors; -1 means /dev/null.
    int standard_input = -1;
    int standard_output = -1;
    int standard_error = -1;
    /// Borrowed descriptors that become 3, 4, … in the process.
    std::vector<int> passed;
    /// Leader of a session of its own whose controlling terminal is `standard_input`.
    bool controlling_terminal = false;
    /// Borrowed; what the process is put into before its program starts.
    const Enclosure* enclosure = nullptr;
};

/// Starts a process as leader of its own group, with default signal handling and no descriptors
/// but its three and those passed. Costs no copy of the address space: the caller stands still
/// until the new program runs, and a failure of any step comes back as an error that names it.
/// Linux only.
Result<pid_t> spawn(const SpawnRequest& request);

/// Where a bare name is looked up: the absolute entries of a PATH value.
std::vector<std::string> search_path(std::string_view name, std::optional<std::string_view> path);

/// `argv` as a program: a name with `/` as it stands, a bare one in PATH.
Program program_of(std::vector<std::string> argv, std::optional<std::string_view> path);

/// `command` under bash, else under sh.
std::vector<Program> shell_programs(const std::string& command,
                                    std::optional<std::string_view> path);

/// Credentials for a request (execd contract 3.2): the gid defaults to the user's login group, else
/// to the uid. Empty when they are those of this process.
std::optional<Credentials> credentials_for(uid_t uid, std::optional<gid_t> gid);

}  // namespace opensandbox::agent
