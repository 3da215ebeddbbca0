#include "agent/pty/sessions.hpp"

#include "base/identifier.hpp"

#include <signal.h>

namespace opensandbox::agent {

Result<std::shared_ptr<PtySession>> PtySessions::create(PtyShell shell) {
    if (sessions_.size() >= kMax && !forget_oldest()) {
        return Error(ErrorCode::resource_exhausted,
                     "there are " + std::to_string(kMax) +
                         " PTY sessions, which is the most: delete one first");
    }
    auto session = std::make_shared<PtySession>(context_, new_uuid(), std::move(shell));
    sessions_.emplace(session->id(), session);
    return session;
}

std::shared_ptr<PtySession> PtySessions::find(const std::string& id) const {
    auto at = sessions_.find(id);
    return at == sessions_.end() ? nullptr : at->second;
}

bool PtySessions::remove(const std::string& id) {
    auto at = sessions_.find(id);
    if (at == sessions_.end()) return false;
    at->second->remove();
    sessions_.erase(at);
    return true;
}

void PtySessions::sweep(Timestamp time) {
    std::erase_if(sessions_, [&](const auto& item) {
        const PtySession& session = *item.second;
        return session.idle() && time - session.idle_since() > kRetention;
    });
}

bool PtySessions::forget_oldest() {
    auto oldest = sessions_.end();
    for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
        if (!at->second->ended()) continue;
        if (oldest == sessions_.end() || at->second->idle_since() < oldest->second->idle_since()) {
            oldest = at;
        }
    }
    if (oldest == sessions_.end()) return false;
    sessions_.erase(oldest);
    return true;
}

std::size_t PtySessions::signal_all(int number) const {
    std::size_t running = 0;
    for (const auto& [id, session] : sessions_) {
        if (!session->running()) continue;
        ++running;
        if (number == SIGTERM) session->process()->signal(SIGHUP);
        if (number != 0) session->process()->signal(number);
    }
    return running;
}

}  // namespace opensandbox::agent
