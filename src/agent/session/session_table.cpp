#include "agent/session/session_table.hpp"

#include "base/identifier.hpp"

namespace opensandbox::agent {

Result<std::shared_ptr<Session>> SessionTable::create(std::string directory) {
    if (sessions_.size() >= kMaxSessions) {
        return Error(ErrorCode::resource_exhausted,
                     "there are " + std::to_string(kMaxSessions) +
                         " sessions already; delete one that is not needed any more");
    }
    std::string id = new_uuid();
    auto session =
        std::make_shared<Session>(context_, budget_, observer_, id, std::move(directory));
    sessions_.emplace(std::move(id), session);
    return session;
}

std::shared_ptr<Session> SessionTable::find(const std::string& id) const {
    auto at = sessions_.find(id);
    return at == sessions_.end() ? nullptr : at->second;
}

bool SessionTable::erase(const std::string& id) {
    auto at = sessions_.find(id);
    if (at == sessions_.end()) return false;
    at->second->close();
    sessions_.erase(at);
    return true;
}

std::size_t SessionTable::signal_all(int number) const {
    std::size_t running = 0;
    for (const auto& [id, session] : sessions_) {
        if (session->signal_group(number)) ++running;
    }
    return running;
}

}  // namespace opensandbox::agent
