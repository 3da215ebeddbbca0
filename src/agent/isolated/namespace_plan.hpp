#pragma once

#include "agent/isolated/request.hpp"
#include "agent/process/enclosure.hpp"
#include "base/unique_fd.hpp"

#include <string>
#include <vector>

namespace opensandbox::agent {

/// One mount that a session gets beside the read-only tree of the sandbox.
struct Attachment {
    std::string target;  ///< where it goes
    /// Of a bind: the mount itself, detached, made by the agent after it checked the source.
    UniqueFd source;
    bool directory = true;
    bool read_only = false;
    /// Of an overlay: its layers. They are looked up in the session's mounts before those change.
    bool overlay = false;
    std::string lower;
    std::string upper;
    std::string work;
    /// The layers lie in the session's own memory file system below `upper_root`, and are made
    /// there.
    bool in_memory = false;
    bool user_attributes = false;  ///< see needs_user_attributes()
};

/// All that the first process of a session needs to build it. Nothing is looked up or allocated
/// later: that process is a copy of the agent whose other threads are gone.
struct NamespacePlan {
    std::vector<Attachment> attachments;  ///< shallow targets first
    std::string upper_root;               ///< covered: the uppers of other sessions lie there
    std::string memory_options;           ///< of the file system that covers it
    std::string scratch_options;          ///< of a private /tmp
    bool private_tmp = true;
    bool share_net = true;
    bool user_namespace = false;
    std::string uid_map;  ///< "inside outside 1"
    std::string gid_map;
    /// Whose the directory for the shell's state is (ids of the agent's namespace).
    uid_t uid = 0;
    gid_t gid = 0;
    Enclosure first;  ///< what the first process is confined to, once all is made
};

/// What the first process does, in order; also what an error says it was doing.
enum class SetupStep : int {
    none,
    privacy,
    overlay,
    uppers,
    read_only,
    scratch,
    proc,
    devices,
    attach,
    network,
    user,
    report,
};

/// What it says when it is done or could not go on.
struct SetupReport {
    SetupStep step = SetupStep::none;
    int error = 0;
    int index = -1;  ///< of the attachment
};

/// Where the shell of a session keeps what lasts from one run to the next.
inline constexpr const char* kStateDirectory = "/run/opensandbox";

/// The body of the first process: builds the session, sends a SetupReport with the descriptors of
/// its namespaces over `channel`, and then stays until the other end of `channel` closes.
[[noreturn]] void run_first_process(const NamespacePlan& plan, int channel);

}  // namespace opensandbox::agent
