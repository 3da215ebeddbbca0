#pragma once

#include "net/openssl_handles.hpp"

#include <list>
#include <string>
#include <unordered_map>

namespace opensandbox::egress {

/// Sessions with upstream servers that may be resumed, the least recently used dropped first. The
/// key says for whom and with what: a session is never used under another. Not thread-safe.
class SessionCache {
  public:
    explicit SessionCache(std::size_t capacity) : capacity_(capacity) {}

    void put(const std::string& key, net::SessionHandle session);
    /// A session of TLS 1.3 is handed out once (RFC 8446 appendix C.4), an older one again and
    /// again. Null when there is none.
    net::SessionHandle take(const std::string& key);
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

  private:
    struct Entry {
        std::string key;
        net::SessionHandle session;
    };
    std::size_t capacity_;
    std::list<Entry> entries_;  ///< the most recently used first
    std::unordered_multimap<std::string_view, std::list<Entry>::iterator> by_key_;

    void drop(std::list<Entry>::iterator entry);
};

}  // namespace opensandbox::egress
