#include "kube/access/kubeconfig.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

/// Any text is a cluster that can be dialled or an error; one file twice says what it says once.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    const kube::KubeconfigFile file{"/folder/config",
                                    std::string(reinterpret_cast<const char*>(data), size)};
    const auto cluster = kube::read_kubeconfig({file});
    const auto again = kube::read_kubeconfig({file, file});
    if (cluster.has_value() != again.has_value()) std::abort();
    if (!cluster) {
        if (cluster.error().message().empty()) std::abort();
        return 0;
    }
    if (cluster->server.empty() || cluster->name_space.empty()) std::abort();
    if (cluster->server != again->server) std::abort();
    if (cluster->token.find_first_of("\r\n ") != std::string::npos) std::abort();
    for (const std::string& path :
         {cluster->tls.ca_file, cluster->tls.cert_file, cluster->token_file})
        if (!path.empty() && path.front() != '/') std::abort();
    if (cluster->plugin && cluster->plugin->command.empty()) std::abort();
    return 0;
}
