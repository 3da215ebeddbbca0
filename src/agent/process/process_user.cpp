#include "agent/process/process_user.hpp"

#include <unistd.h>

namespace opensandbox::agent {

bool ProcessUser::is_own() const {
    return uid == ::geteuid() && gid == ::getegid();
}

std::optional<Credentials> ProcessUser::credentials() const {
    return is_own() ? std::nullopt : credentials_for(uid, gid);
}

}  // namespace opensandbox::agent
