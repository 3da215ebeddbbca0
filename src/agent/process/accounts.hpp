#pragma once

#include "base/error.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// The users and groups of /etc/passwd and /etc/group, read directly: the agent is a static
/// program and runs over any root file system, so it asks no name service.
class Accounts {
  public:
    /// Missing or unreadable files make an empty table. Reads at most 1 MiB of each.
    static Accounts load();
    /// From the texts of the two files. Malformed lines are skipped.
    static Accounts parse(std::string_view passwd, std::string_view group);

    /// Name or decimal id; `invalid_argument` for a name that nobody has.
    [[nodiscard]] Result<uid_t> user_id(std::string_view name) const;
    [[nodiscard]] Result<gid_t> group_id(std::string_view name) const;
    /// The name, or the decimal id when nobody has it.
    [[nodiscard]] std::string user_name(uid_t id) const;
    [[nodiscard]] std::string group_name(gid_t id) const;
    /// The user's login group; empty for an unknown user.
    [[nodiscard]] std::optional<gid_t> primary_group(uid_t id) const;
    /// `primary` and every group that lists the user.
    [[nodiscard]] std::vector<gid_t> groups_of(uid_t id, gid_t primary) const;

  private:
    struct User {
        std::string name;
        uid_t id = 0;
        gid_t group = 0;
    };
    struct Group {
        std::string name;
        gid_t id = 0;
        std::string members;  ///< comma-separated
    };
    [[nodiscard]] const User* find_user(uid_t id) const;

    std::vector<User> users_;
    std::vector<Group> groups_;
};

}  // namespace opensandbox::agent
