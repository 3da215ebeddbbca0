#pragma once

#include "base/error.hpp"
#include "base/log.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace opensandbox::controller {

/// The flags of the role, those of the published controller among them (kubernetes 2).
struct ControllerOptions {
    bool help = false;
    std::string kubeconfig;
    std::string context;
    std::string name_space;  ///< of objects; empty: all
    bool leader_elect = false;
    std::string leader_election_namespace;  ///< empty: the pod's, or the kubeconfig's
    std::string probe_address = ":8081";    ///< "0": none
    std::string metrics_address = "0";      ///< "0": none
    std::int64_t client_qps = 100;
    std::int64_t client_burst = 200;
    std::int64_t workers = 32;  ///< of BatchSandboxes
    std::int64_t pool_workers = 16;
    std::int64_t stuck_seconds = 60;
    std::int64_t recovery_attempts = 3;
    log::Level log_level = log::Level::info;
    log::Format log_format = log::Format::json;
    std::vector<std::string> ignored;  ///< flags that say nothing to this controller
};

/// The error names the flag.
Result<ControllerOptions> parse_controller_options(const std::vector<std::string>& arguments);

std::string controller_usage();

/// Host and port of ":8081", "0.0.0.0:8081" and "[::]:8081".
struct ProbeAddress {
    std::string host;
    std::uint16_t port = 0;
};
Result<ProbeAddress> parse_probe_address(const std::string& text);

}  // namespace opensandbox::controller
