#pragma once

#include "agent/process/environment.hpp"

#include <chrono>
#include <string>

namespace opensandbox::agent {

/// Makes programs trust the certificate of the sandbox's egress proxy (execd contract 11, step 1):
/// waits for /opt/opensandbox/mitmproxy-ca-cert.pem, puts it into the system's store and into
/// $HOME/.pki/nssdb where the tools for it exist, merges it with the public certificates into
/// /opt/opensandbox/merged-ca-certificates.pem, and sets NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE
/// and SSL_CERT_FILE. What cannot be done is logged and left. Blocks.
class EgressCertificate {
  public:
    /// All paths are below `root`, empty for the real ones.
    explicit EgressCertificate(std::string root = {}) : root_(std::move(root)) {}

    /// OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT is 1, true, yes or on.
    static bool wanted(const Environment& environment);
    /// Waits until the certificate is there, at most so long; false when it did not come. SIGTERM
    /// and SIGINT, which must be blocked, end the wait early.
    [[nodiscard]] bool wait(std::chrono::milliseconds limit) const;
    /// Everything else.
    void trust(Environment& environment) const;

    [[nodiscard]] std::string certificate() const;
    [[nodiscard]] std::string merged() const;

  private:
    [[nodiscard]] std::string public_bundle() const;
    [[nodiscard]] bool merge() const;
    void install(const Environment& environment) const;
    void import_into_nss(const Environment& environment) const;

    std::string root_;
};

}  // namespace opensandbox::agent
