#pragma once

#include "base/error.hpp"
#include "json/document.hpp"
#include "kube/access/kubeconfig.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace opensandbox::kube {

/// A cluster, user or context that kubeconfig files name.
struct KubeconfigEntry {
    json::object content;
    std::filesystem::path file;  ///< that it stands in
    std::string place;           ///< "FILE: users: NAME"
};
using KubeconfigEntries = std::map<std::string, KubeconfigEntry>;

/// Several kubeconfig files as one.
struct MergedKubeconfig {
    std::string current_context;  ///< empty: none is named
    KubeconfigEntries clusters;
    KubeconfigEntries users;
    KubeconfigEntries contexts;
};

/// Of entries with one name the first counts. `invalid_argument` names the file, the list and the
/// entry. Pure.
Result<MergedKubeconfig> merge_kubeconfigs(const std::vector<KubeconfigFile>& files);

}  // namespace opensandbox::kube
