#pragma once

#include "json/document.hpp"
#include "model/json_text.hpp"
#include "runtime/egress_sidecar.hpp"
#include "runtime/host_volume.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace opensandbox::runtime::kubernetes {

/// The section [kubernetes] of the configuration, and what of others concerns pods (kubernetes 3).
struct KubernetesOptions {
    // [kubernetes]
    std::filesystem::path kubeconfig;  ///< empty: the usual places
    std::string context;               ///< empty: the kubeconfig's current one
    bool skip_verification = false;    ///< the API server's certificate is not checked
    std::string name_space;            ///< of sandboxes; empty: that of kubeconfig or pod
    std::string image;                 ///< ours: agent and egress sidecar come from it
    std::string pull_policy = "IfNotPresent";
    std::filesystem::path template_file;  ///< YAML that lies under every BatchSandbox
    json::object manifest;                ///< what it says; read by serve
    std::chrono::seconds create_timeout{60};
    std::chrono::seconds pool_timeout{30};  ///< for a pod of a pool that is full
    model::StringMap installer_limits;      ///< execd_init_resources
    model::StringMap installer_requests;
    std::int64_t read_qps = 0;  ///< requests a second; 0: no limit
    std::int64_t read_burst = 0;
    std::int64_t write_qps = 0;
    std::int64_t write_burst = 0;

    // [runtime]
    std::string execd_image;         ///< the published agent's, instead of ours
    bool execd_run_as_init = false;  ///< sets EXECD_INIT; our agent is always init

    // [egress]
    EgressSidecarOptions egress;
    model::StringMap egress_limits;
    model::StringMap egress_requests;

    // [secure_runtime], [storage]
    std::string runtime_class;
    AllowedHostPaths allowed_host_paths;
    std::string claim_size = "1Gi";  ///< of claims that do not say any
};

}  // namespace opensandbox::runtime::kubernetes
