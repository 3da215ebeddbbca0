#pragma once

#include "json/document.hpp"
#include "runtime/docker/docker_options.hpp"
#include "runtime/egress_sidecar.hpp"
#include "runtime/runtime.hpp"

#include <cstdint>
#include <string>

/// The egress sidecar of a sandbox with a network policy (lifecycle 6.5). Pure.
namespace opensandbox::runtime::docker {

struct SidecarPlan {
    std::string server_id;
    std::string image;
    std::string token;  ///< OPENSANDBOX-EGRESS-AUTH
    std::uint16_t agent_port = 0;
    std::uint16_t http_port = 0;
    std::uint16_t egress_port = 0;
    bool sysctls = true;  ///< false: the engine refused them
};

/// What is wrong with the request or the configuration, `invalid_argument` with
/// SANDBOX::INVALID_PARAMETER. Succeeds without a policy.
Status check_network_policy(const SandboxSpec& spec, const DockerOptions& options);

/// The body of POST /containers/create.
json::object sidecar_body(const SandboxSpec& spec, const DockerOptions& options,
                          const SidecarPlan& plan);

}  // namespace opensandbox::runtime::docker
