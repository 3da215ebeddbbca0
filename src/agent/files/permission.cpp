#include "agent/files/permission.hpp"

#include "agent/files/file_info.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {

Result<Permission> parse_permission(const json::object& from) {
    Permission permission;
    auto owner = json::get_string(from, "owner");
    if (!owner) return owner.error();
    auto group = json::get_string(from, "group");
    if (!group) return group.error();
    auto mode = json::get_integer(from, "mode");
    if (!mode) return mode.error();
    permission.owner = owner->value_or("");
    permission.group = group->value_or("");
    if (mode->value_or(0) != 0) {
        Result<unsigned> bits = mode_from_wire(**mode);
        if (!bits) return bits.error();
        permission.mode = *bits;
    }
    return permission;
}

Result<PermissionIds> resolve_permission(const Permission& permission, const Accounts& accounts) {
    PermissionIds ids;
    if (!permission.owner.empty()) {
        Result<uid_t> uid = accounts.user_id(permission.owner);
        if (!uid) return uid.error();
        ids.uid = *uid;
    }
    if (!permission.group.empty()) {
        Result<gid_t> gid = accounts.group_id(permission.group);
        if (!gid) return gid.error();
        ids.gid = *gid;
    }
    return ids;
}

Status apply_permission(const std::string& path, const Permission& permission) {
    if (permission.empty()) return {};
    UniqueFd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!file) return Error::from_errno(errno, path);
    return apply_permission(file.get(), path, permission);
}

Status apply_permission(int fd, const std::string& path, const Permission& permission) {
    if (permission.empty()) return {};
    Result<PermissionIds> ids = resolve_permission(permission, Accounts::load());
    if (!ids) return ids.error();
    bool owned = ids->uid != static_cast<uid_t>(-1) || ids->gid != static_cast<gid_t>(-1);
    if (owned && ::fchownat(fd, "", ids->uid, ids->gid, AT_EMPTY_PATH) != 0) {
        return Error::from_errno(errno, "change owner of " + path);
    }
    if (permission.mode && ::fchmod(fd, *permission.mode) != 0) {
        // A path descriptor takes no fchmod.
        if (errno != EBADF || ::chmod(path.c_str(), *permission.mode) != 0) {
            return Error::from_errno(errno, "change mode of " + path);
        }
    }
    return {};
}

}  // namespace opensandbox::agent
