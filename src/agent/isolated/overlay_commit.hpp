#pragma once

#include "agent/isolated/session.hpp"
#include "agent/isolated/upper_changes.hpp"
#include "agent/isolated/upper_commit.hpp"

namespace opensandbox::agent {

/// The upper of an overlay, open, wherever it lies. Blocks; not on the main thread.
Result<UniqueFd> open_upper(const SessionOverlay& overlay, const SessionNamespaces& namespaces);

/// Commits the selected part of one overlay: takes it out of the session's mounts, changes the
/// lower directory, and puts a fresh overlay of both in its place. `nested` are mounts of the
/// session below it; they stay. `conflict` names files that others changed unless `force`. Blocks;
/// not on the main thread.
Status commit_overlay(SessionOverlay& overlay, const SessionNamespaces& namespaces,
                      const std::vector<std::string>& nested, const Selection& selection,
                      bool force);

}  // namespace opensandbox::agent
