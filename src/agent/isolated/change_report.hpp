#pragma once

#include "agent/isolated/session.hpp"

#include <string>

namespace opensandbox::agent {

/// The members `changes` and `truncated` for the overlays of a session. Blocks; not on the main
/// thread.
Result<std::string> describe_changes(IsolatedSession& session);

/// What one changed path looks like before and after.
struct PathDifference {
    std::string body;
    bool text = false;
};

/// The difference at an absolute path: a unified diff when both sides are text, else what is there
/// now. `not_found` when nothing changed there. Blocks; not on the main thread.
Result<PathDifference> difference_of(IsolatedSession& session, const std::string& path);

}  // namespace opensandbox::agent
