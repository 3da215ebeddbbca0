#pragma once

#include "model/json_text.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <string>
#include <string_view>

/// What every backend with an egress sidecar a sandbox knows of it (lifecycle 6.5, network 1).
/// Pure.
namespace opensandbox::runtime {

/// The section [egress] of the configuration.
struct EgressSidecarOptions {
    std::string image;  ///< empty: our own program
    /// "dns", "dns+nft", or empty: nothing was said. See egress_mode_of().
    std::string mode;
    bool disable_ipv6 = true;
    std::chrono::seconds readiness_timeout{30};
    std::string otlp_endpoint;
    /// Settings of every sidecar by their variables; a request's own go before them.
    model::StringMap environment;
    std::string upstream_proxy_url;
    std::string upstream_proxy_authorization;
    std::string upstream_proxy_ca_cert_path;
};

/// How sidecars enforce. What the operator says counts. Else, with an image of somebody else's, the
/// contract's default: "dns". With our own "dns+nft": it needs nothing more of the host, without it
/// a sandbox reaches every address that it knows without asking for a name, and the credential
/// vault works in that mode only.
std::string egress_mode_of(const EgressSidecarOptions& options);

/// Where a sidecar finds the authority of EgressSidecarOptions::upstream_proxy_ca_cert_path.
inline constexpr std::string_view kUpstreamCaFile =
    "/etc/ssl/certs/opensandbox-upstream-extra-ca.pem";
/// What the sandbox and its sidecar share: the sidecar's certificate comes there.
inline constexpr std::string_view kSharedDirectory = "/opt/opensandbox";

/// What is wrong with a request for a policy, `invalid_argument` with SANDBOX::INVALID_PARAMETER.
/// Succeeds without a policy.
Status check_sidecar(const SandboxSpec& spec, const EgressSidecarOptions& options);

/// Whether the sandbox's TLS traffic goes through its sidecar.
bool is_transparent(const SandboxSpec& spec);

/// "all" or "credential-bound"; empty when it does not.
std::string interception_mode(const SandboxSpec& spec);

/// The variables of a sidecar, in the contract's order (network 1.3). `token`:
/// OPENSANDBOX-EGRESS-AUTH.
model::StringMap sidecar_environment(const SandboxSpec& spec, const EgressSidecarOptions& options,
                                     const std::string& token);

}  // namespace opensandbox::runtime
