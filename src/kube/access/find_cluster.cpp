#include "kube/access/find_cluster.hpp"

#include "kube/access/kubeconfig.hpp"
#include "kube/access/small_file.hpp"

#include <cstdlib>

namespace opensandbox::kube {
namespace {

std::string variable(const ClusterChoice& choice, const std::string& name) {
    if (choice.variable) return choice.variable(name).value_or("");
    const char* found = std::getenv(name.c_str());
    return found ? found : "";
}

/// A list of paths, as of PATH.
std::vector<std::filesystem::path> paths_in(const std::string& list) {
    std::vector<std::filesystem::path> paths;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(':', at), list.size());
        if (end > at) paths.emplace_back(list.substr(at, end - at));
        at = end + 1;
    }
    return paths;
}

/// Those that are there.
Result<std::vector<KubeconfigFile>> read_files(const std::vector<std::filesystem::path>& paths) {
    std::vector<KubeconfigFile> files;
    for (const auto& path : paths) {
        auto text = read_small_file(path);
        if (text) {
            files.push_back({std::filesystem::absolute(path), std::move(*text)});
        } else if (text.error().code() != ErrorCode::not_found) {
            return text.error();
        }
    }
    return files;
}

Result<Cluster> own_cluster(const ClusterChoice& choice, const std::string& host,
                            const std::string& port) {
    Cluster cluster;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    cluster.server = "https://" + (is_ipv6 ? "[" + host + "]" : host) + ":" + port;
    cluster.tls.ca_file = choice.service_account / "ca.crt";
    cluster.token_file = choice.service_account / "token";
    auto name_space = read_small_word(choice.service_account / "namespace");
    if (name_space) cluster.name_space = std::move(*name_space);
    if (cluster.name_space.empty()) cluster.name_space = "default";
    return cluster;
}

}  // namespace

Result<Cluster> find_cluster(const ClusterChoice& choice) {
    if (!choice.kubeconfig.empty()) {
        auto text = read_small_file(choice.kubeconfig);
        if (!text) return text.error().within("kubeconfig");
        return read_kubeconfig({{std::filesystem::absolute(choice.kubeconfig), std::move(*text)}},
                               choice.context);
    }
    const std::string listed = variable(choice, "KUBECONFIG");
    auto named = read_files(paths_in(listed));
    if (!named) return named.error();
    if (!named->empty()) return read_kubeconfig(*named, choice.context);
    const std::string host = variable(choice, "KUBERNETES_SERVICE_HOST");
    const std::string port = variable(choice, "KUBERNETES_SERVICE_PORT");
    std::error_code ignored;
    const bool in_pod = !host.empty() && !port.empty() && choice.context.empty() &&
                        std::filesystem::exists(choice.service_account / "token", ignored);
    if (in_pod) return own_cluster(choice, host, port);
    const std::filesystem::path home = variable(choice, "HOME");
    // A list that is wrong must not lead to some other cluster.
    std::string looked = "KUBECONFIG (" + listed + ")";
    if (listed.empty()) {
        looked = ((home.empty() ? "~" : home) / ".kube/config").string();
        auto files = read_files({looked});
        if (!files) return files.error();
        if (!files->empty()) return read_kubeconfig(*files, choice.context);
    }
    std::string message = "no cluster is named: there is no kubeconfig in " + looked;
    if (choice.context.empty()) message += ", and this is no pod with a service account";
    return Error(ErrorCode::not_found, std::move(message));
}

}  // namespace opensandbox::kube
