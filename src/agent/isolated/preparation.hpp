#pragma once

#include "agent/isolated/config.hpp"
#include "agent/isolated/namespace_plan.hpp"
#include "agent/isolated/upper_store.hpp"

namespace opensandbox::agent {

/// Where a persistent overlay of a session keeps what was written.
struct SessionOverlay {
    SessionOverlay() = default;
    std::string path;   ///< of the overlay in the session, and of its lower outside
    UniqueFd lower;     ///< the directory outside, as it was found when the session began
    std::string upper;  ///< see `in_memory`
    std::string work;
    bool in_memory = false;  ///< `upper` is a path in the session's mounts, not in the agent's
    bool user_attributes = false;  ///< see needs_user_attributes()
    /// Changes of the lower after this time are someone else's (seconds and nanoseconds, ctime).
    timespec since{};
};

/// A session ready to be built.
struct Preparation {
    Preparation() = default;
    NamespacePlan plan;
    SessionDirectory directory;
    std::vector<SessionOverlay> overlays;  ///< the persistent ones
};

/// Looks at the file system, checks sources against the allow-list after links were resolved, and
/// makes directories for uppers. With `in_memory` those lie in the session's memory, for hosts
/// whose disk cannot hold them. `invalid_argument` names what is wrong with the request. Blocks.
Result<Preparation> prepare_session(const IsolatedSessionRequest& request,
                                    const IsolationConfig& config, const std::string& id,
                                    bool in_memory);

/// The time with which changes of inodes are compared: what changes in the same tick of the kernel
/// may seem older.
timespec current_time();

}  // namespace opensandbox::agent
