#pragma once

#include "agent/process/environment.hpp"

#include <chrono>
#include <string>

namespace opensandbox::agent {

/// Makes programs trust the certificate of the sandbox's egress proxy (execd contract 11, step 1):
/// waits for /opt/opensandbox/mitmproxy-ca-cert.pem, puts it into the system's store and into
/// $HOME/.pki/nssdb where the tools for it exist, merges it with the public certificates into
/// /opt/opensandbox/merged-ca-certificates.pem, and sets NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE
/// and SSL_CERT_FILE. Beyond the contract, and unless they are set: the variables of curl, pip,
/// git, Cargo, npm, Deno and AWS's clients; for wget a file where the system's store could not be
/// changed; for Java an entry in its own store, or where that cannot be the same certificates as
/// /opt/opensandbox/merged-ca-certificates.p12, named in JAVA_TOOL_OPTIONS. What
/// cannot be done is logged and left. Blocks.
class EgressCertificate {
  public:
    /// All paths are below `root`, empty for the real ones.
    explicit EgressCertificate(std::string root = {}) : root_(std::move(root)) {}

    /// OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT is 1, true, yes or on.
    static bool wanted(const Environment& environment);
    /// Waits until the certificate is there, at most so long; false when it did not come. SIGTERM
    /// and SIGINT, which must be blocked, end the wait early.
    [[nodiscard]] bool wait(std::chrono::milliseconds limit) const;
    /// Puts it there, for one who has it already.
    [[nodiscard]] bool place(const std::string& pem) const;
    /// Everything else.
    void trust(Environment& environment) const;

    [[nodiscard]] std::string certificate() const;
    [[nodiscard]] std::string merged() const;

  private:
    [[nodiscard]] std::string public_bundle() const;
    [[nodiscard]] bool merge() const;
    void name_bundle(Environment& environment, bool installed) const;
    void trust_in_java(Environment& environment) const;
    /// Whether it is in the system's store now.
    [[nodiscard]] bool install(const Environment& environment) const;
    void import_into_nss(const Environment& environment) const;

    std::string root_;
};

}  // namespace opensandbox::agent
