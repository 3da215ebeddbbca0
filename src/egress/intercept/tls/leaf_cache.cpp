#include "egress/intercept/tls/leaf_cache.hpp"

namespace opensandbox::egress {

Result<X509*> LeafCache::get(const std::string& host) {
    auto now = std::chrono::system_clock::now();
    auto found = by_host_.find(host);
    if (found != by_host_.end()) {
        auto entry = found->second;
        // Remade well before it runs out; a clock that was set back must not keep it for ever.
        auto age = now - entry->made;
        if (age >= std::chrono::hours(-1) && age < CertificateAuthority::kLeafLife / 2) {
            entries_.splice(entries_.begin(), entries_, entry);
            return entry->certificate.get();
        }
        by_host_.erase(found);
        entries_.erase(entry);
    }
    auto made = authority_.issue(host);
    if (!made) return made.error();
    entries_.push_front({host, std::move(*made), now});
    by_host_.emplace(entries_.front().host, entries_.begin());
    if (entries_.size() > capacity_ && entries_.size() > 1) {
        by_host_.erase(entries_.back().host);
        entries_.pop_back();
    }
    return entries_.front().certificate.get();
}

}  // namespace opensandbox::egress
