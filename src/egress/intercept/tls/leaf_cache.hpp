#pragma once

#include "egress/intercept/tls/certificate_authority.hpp"

#include <chrono>
#include <list>
#include <string>
#include <unordered_map>

namespace opensandbox::egress {

/// The certificates shown for names, made at first use and kept while they are used: the least
/// recently used goes first. Not thread-safe.
class LeafCache {
  public:
    /// `authority` is borrowed.
    LeafCache(const CertificateAuthority& authority, std::size_t capacity)
        : authority_(authority), capacity_(capacity) {}

    /// For exactly this name or address; borrowed until the next call.
    Result<X509*> get(const std::string& host);
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

  private:
    struct Entry {
        std::string host;
        net::CertificateHandle certificate;
        std::chrono::system_clock::time_point made;
    };

    const CertificateAuthority& authority_;
    std::size_t capacity_;
    std::list<Entry> entries_;  ///< the most recently used first
    std::unordered_map<std::string_view, std::list<Entry>::iterator> by_host_;
};

}  // namespace opensandbox::egress
