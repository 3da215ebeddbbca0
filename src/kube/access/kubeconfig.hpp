#pragma once

#include "base/error.hpp"
#include "kube/access/cluster.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace opensandbox::kube {

/// A kubeconfig file that was read.
struct KubeconfigFile {
    std::filesystem::path path;  ///< paths in it are relative to its folder
    std::string text;            ///< YAML or JSON, kind Config
};

/// What kubeconfig files say of a context, the current one when `context` is empty. Of entries with
/// one name the first file's counts, as kubectl has it. `invalid_argument` names the file, the
/// entry and the member that is wrong or not supported (auth-provider, impersonation, proxies);
/// `not_found` names the context, cluster or user that is missing. Pure.
Result<Cluster> read_kubeconfig(const std::vector<KubeconfigFile>& files,
                                const std::string& context = {});

}  // namespace opensandbox::kube
