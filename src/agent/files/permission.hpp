#pragma once

#include "agent/process/accounts.hpp"
#include "json/document.hpp"

#include <sys/types.h>

#include <optional>
#include <string>

namespace opensandbox::agent {

/// Owner, group and mode to give to a file (execd contract 6.2). Empty members stay as they are.
struct Permission {
    std::string owner;  ///< name or decimal id
    std::string group;
    std::optional<unsigned> mode;

    [[nodiscard]] bool empty() const { return owner.empty() && group.empty() && !mode; }
};

/// From the members `owner`, `group` and `mode`; mode 0 leaves the mode. Pure.
Result<Permission> parse_permission(const json::object& from);

/// Ids for the names; `invalid_argument` for a name that nobody has.
struct PermissionIds {
    uid_t uid = static_cast<uid_t>(-1);
    gid_t gid = static_cast<gid_t>(-1);
};
Result<PermissionIds> resolve_permission(const Permission& permission, const Accounts& accounts);

/// Applies it to a path, following links. Owner first: a change of owner clears special bits.
Status apply_permission(const std::string& path, const Permission& permission);
Status apply_permission(int fd, const std::string& path, const Permission& permission);

}  // namespace opensandbox::agent
