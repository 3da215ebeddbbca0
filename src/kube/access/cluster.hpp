#pragma once

#include "net/tls.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::kube {

/// A program that gives credentials (client.authentication.k8s.io, v1 and v1beta1).
struct CredentialPlugin {
    std::string api_version;  ///< the whole of it: "client.authentication.k8s.io/v1"
    std::string command;      ///< found on PATH, or a path
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> environment;
    bool wants_cluster = false;  ///< it is told which cluster the credentials are for
    std::string install_hint;    ///< shown when it is not there
};

/// Where an API server is and who we are to it. Never logged: it holds secrets.
struct Cluster {
    std::string server;      ///< URL without a path at its end's slash: "https://10.0.0.1:6443"
    std::string name_space;  ///< of objects for which none is named; "default" by itself
    net::TlsSettings tls;    ///< whom we trust, and a client certificate
    std::string token;       ///< of Authorization: Bearer
    std::string token_file;  ///< read again as it rotates; wins over `token`
    std::string username;    ///< of basic authentication
    std::string password;
    std::optional<CredentialPlugin> plugin;
};

}  // namespace opensandbox::kube
