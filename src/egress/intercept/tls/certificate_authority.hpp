#pragma once

#include "base/error.hpp"
#include "net/openssl_handles.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// Where an authority is kept. One file may hold both (mitmproxy's `mitmproxy-ca.pem`).
struct AuthorityFiles {
    std::filesystem::path certificate;  ///< PEM, mode 0644
    std::filesystem::path key;          ///< PEM, not encrypted, mode 0600
};

/// Signs the certificates that sandboxes are shown. They are made for one exact name, live a week
/// and share one key, which lives as long as this object.
class CertificateAuthority {
  public:
    /// A new one: EC P-256, ten years, may sign servers' certificates only.
    static Result<CertificateAuthority> make();
    /// `invalid_argument` when the two do not fit, have run out, or may not sign certificates.
    static Result<CertificateAuthority> parse(std::string_view certificate_pem,
                                              std::string_view key_pem);
    /// Loads it; makes and keeps a new one when neither file is there. One file alone, or one that
    /// is wrong, is an error: a silently new authority would be trusted nowhere.
    static Result<CertificateAuthority> load_or_make(const AuthorityFiles& files);

    /// What sandboxes are to trust.
    [[nodiscard]] const std::string& certificate_pem() const { return certificate_pem_; }
    /// Whole files, each replaced at once, the key first.
    [[nodiscard]] Status save(const AuthorityFiles& files) const;

    /// A certificate for a name in normal form or an address, for leaf_key().
    [[nodiscard]] Result<net::CertificateHandle> issue(const std::string& host) const;
    [[nodiscard]] EVP_PKEY* leaf_key() const { return leaf_key_.get(); }

    static constexpr std::chrono::hours kLeafLife{7 * 24};

  private:
    CertificateAuthority() = default;
    Status finish();

    net::KeyHandle key_;
    net::CertificateHandle certificate_;
    net::KeyHandle leaf_key_;
    std::string certificate_pem_;
};

}  // namespace opensandbox::egress
