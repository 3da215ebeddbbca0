#include "egress/intercept/tls/session_cache.hpp"

namespace opensandbox::egress {
namespace {

/// Kept for one key: as many connections may be resumed at once.
constexpr std::size_t kPerKey = 8;

}  // namespace

void SessionCache::drop(std::list<Entry>::iterator entry) {
    auto [from, to] = by_key_.equal_range(entry->key);
    for (auto it = from; it != to; ++it) {
        if (it->second != entry) continue;
        by_key_.erase(it);
        break;
    }
    entries_.erase(entry);
}

void SessionCache::put(const std::string& key, net::SessionHandle session) {
    if (by_key_.count(key) >= kPerKey) drop(by_key_.find(key)->second);
    entries_.push_front({key, std::move(session)});
    by_key_.emplace(entries_.front().key, entries_.begin());
    if (entries_.size() > capacity_) drop(std::prev(entries_.end()));
}

net::SessionHandle SessionCache::take(const std::string& key) {
    while (true) {
        auto found = by_key_.find(key);
        if (found == by_key_.end()) return nullptr;
        auto entry = found->second;
        SSL_SESSION* session = entry->session.get();
        if (SSL_SESSION_is_resumable(session) != 1) {
            drop(entry);
            continue;
        }
        SSL_SESSION_up_ref(session);
        net::SessionHandle taken(session);
        if (SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) {
            drop(entry);
        } else {
            entries_.splice(entries_.begin(), entries_, entry);
        }
        return taken;
    }
}

}  // namespace opensandbox::egress
