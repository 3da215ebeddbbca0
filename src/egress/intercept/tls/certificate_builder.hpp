#pragma once

#include "base/error.hpp"
#include "net/openssl_handles.hpp"

#include <chrono>
#include <string>

namespace opensandbox::egress {

/// A certificate in the making; the first step that fails is reported by sign().
class CertificateBuilder {
  public:
    /// With a random serial number, for the holder of `key`.
    explicit CertificateBuilder(EVP_PKEY* key);

    CertificateBuilder& common_name(const std::string& name);
    /// Null: it signs itself. Borrowed until sign().
    CertificateBuilder& issued_by(X509* issuer);
    /// From a day ago (clocks differ) for `life`, but never longer than the issuer.
    CertificateBuilder& valid_for(std::chrono::seconds life);
    /// As openssl.cnf writes it.
    CertificateBuilder& extension(int kind, const std::string& value);
    Result<net::CertificateHandle> sign(EVP_PKEY* key);

  private:
    void check(bool done) { good_ = good_ && done; }

    net::CertificateHandle made_;
    X509* issuer_ = nullptr;
    bool good_ = true;
};

}  // namespace opensandbox::egress
