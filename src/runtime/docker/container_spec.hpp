#pragma once

#include "json/document.hpp"
#include "runtime/docker/docker_options.hpp"
#include "runtime/docker/labels.hpp"
#include "runtime/runtime.hpp"

#include <string>
#include <vector>

/// The JSON bodies of POST /containers/create (lifecycle 6.2, 6.5). Pure.
namespace opensandbox::runtime::docker {

/// Everything beyond the request that decides how a sandbox's container looks.
struct ContainerPlan {
    std::string image;                ///< reference or id
    std::string agent_volume;         ///< name of the volume with the agent
    bool foreign_agent = false;       ///< the agent is the published one, from runtime.execd_image
    std::string network_mode;         ///< bridge, host, a network's name, container:<sidecar>
    std::vector<std::string> binds;   ///< of the request's volumes: "source:target[:ro]"
    bool runtime_volume = false;      ///< share opensandbox-runtime-<id> with a sidecar
    bool transparent_egress = false;  ///< the sandbox must trust its sidecar's certificate
    ContainerFacts facts;
};

json::object container_body(const SandboxSpec& spec, const DockerOptions& options,
                            const ContainerPlan& plan);

/// Whether the sandbox shares the network of a sidecar.
bool joins_sidecar(const ContainerPlan& plan);

}  // namespace opensandbox::runtime::docker
