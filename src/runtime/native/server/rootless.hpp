#pragma once

#include "base/error.hpp"

#include <filesystem>

/// The native runtime for an ordinary user: the whole server, its spawner and all sandboxes live in
/// a user namespace in which this user is root and has the subordinate ids of /etc/subuid and
/// /etc/subgid. Nothing of it has a right that the user does not have.
namespace opensandbox::runtime::native {

/// Moves this process, which must have one thread, into the user namespace where sandboxes of the
/// state directory live, or into a new one when none do; and into a mount namespace of its own.
/// The error says what the host lacks.
Status enter_user_namespace(const std::filesystem::path& state_directory);

}  // namespace opensandbox::runtime::native
