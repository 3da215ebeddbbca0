#pragma once

#include "base/error.hpp"
#include "kube/access/cluster.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace opensandbox::kube {

/// Where to look for a cluster.
struct ClusterChoice {
    std::filesystem::path kubeconfig;  ///< empty: look in the usual places
    std::string context;               ///< of the kubeconfig; empty: its current one
    /// Of the process when not set.
    std::function<std::optional<std::string>(const std::string& name)> variable;
    /// What a pod finds there of the cluster it runs in.
    std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

/// The cluster that is named, by the first of: `kubeconfig`; the files of KUBECONFIG, those that
/// are there as one; the cluster of the pod that this runs in, unless a context is chosen;
/// ~/.kube/config, unless KUBECONFIG stands for it. `not_found` says where was looked in vain,
/// `too_large` names a file above 1 MiB; else the errors of read_kubeconfig(). Blocks.
Result<Cluster> find_cluster(const ClusterChoice& choice);

}  // namespace opensandbox::kube
