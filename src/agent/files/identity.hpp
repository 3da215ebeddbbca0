#pragma once

#include "agent/process/process_user.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

namespace opensandbox::agent {

/// The user as whom a file operation is done (execd contract 6.9), and the mount namespace in which
/// (execd contract 9); empty for the agent's own.
struct Identity {
    Identity(uid_t u, gid_t g, std::shared_ptr<UniqueFd> in = {})
        : uid(u), gid(g), mounts(std::move(in)) {}
    uid_t uid;
    gid_t gid;
    std::shared_ptr<UniqueFd> mounts;
};

/// The user that processes are started as; empty when this process is that user already.
std::optional<Identity> identity_of(const ProcessUser& user);

/// Makes file access of the calling thread, and of it alone, that of another user while it exists.
/// `unsupported` when this process may not do so. Nothing is switched for the user it already is.
class IdentityScope {
  public:
    explicit IdentityScope(const Identity& identity);
    IdentityScope(const IdentityScope&) = delete;
    IdentityScope& operator=(const IdentityScope&) = delete;
    ~IdentityScope();

    [[nodiscard]] const Status& status() const { return status_; }

  private:
    Status status_;
    bool groups_changed_ = false;
    bool ids_changed_ = false;
    std::vector<gid_t> former_groups_;
    uid_t former_uid_ = 0;
    gid_t former_gid_ = 0;
};

}  // namespace opensandbox::agent
