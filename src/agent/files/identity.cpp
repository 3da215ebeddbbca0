#include "agent/files/identity.hpp"

#include <sys/fsuid.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

// Raw calls act on the calling thread; the C library's would change every thread.
bool set_groups(const std::vector<gid_t>& groups) {
    return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

/// The call reports the former value, never failure: whether it took shows when asked again.
bool set_fs_uid(uid_t uid) {
    ::setfsuid(uid);
    return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == uid;
}
bool set_fs_gid(gid_t gid) {
    ::setfsgid(gid);
    return static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))) == gid;
}

}  // namespace

std::optional<Identity> identity_of(const ProcessUser& user) {
    return user.is_own() ? std::nullopt : std::optional<Identity>(Identity(user.uid, user.gid));
}

IdentityScope::IdentityScope(const Identity& identity) {
    former_uid_ = ::geteuid();
    former_gid_ = ::getegid();
    if (identity.uid == former_uid_ && identity.gid == former_gid_) return;
    int count = ::getgroups(0, nullptr);
    former_groups_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    if (count > 0) ::getgroups(count, former_groups_.data());
    if (!set_groups({identity.gid})) {
        status_ = Error(ErrorCode::unsupported, "this agent may not act as another user");
        return;
    }
    groups_changed_ = true;
    ids_changed_ = true;
    if (!set_fs_gid(identity.gid) || !set_fs_uid(identity.uid)) {
        status_ = Error(ErrorCode::unsupported, "this agent may not act as user " +
                                                    std::to_string(identity.uid) + " group " +
                                                    std::to_string(identity.gid));
    }
}

IdentityScope::~IdentityScope() {
    // The user first: it brings the capabilities back that the rest needs. A thread that stayed
    // someone else would do later work with the wrong rights.
    bool restored = true;
    if (ids_changed_) restored = set_fs_uid(former_uid_) && set_fs_gid(former_gid_);
    if (groups_changed_) restored = set_groups(former_groups_) && restored;
    if (!restored) std::abort();
}

}  // namespace opensandbox::agent
