#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace opensandbox::runtime::docker {

/// The environment variables that say where the engine is, as the Docker command line reads them
/// (lifecycle 7). An empty value counts as unset.
struct EngineEnvironment {
    std::string docker_host;        ///< DOCKER_HOST
    std::string docker_tls_verify;  ///< DOCKER_TLS_VERIFY: anything: verify the engine
    std::string docker_cert_path;   ///< DOCKER_CERT_PATH: folder of ca.pem, cert.pem, key.pem
    std::string home;               ///< HOME

    /// From this process.
    static EngineEnvironment current();
};

/// Where an engine listens and how to speak to it.
struct EngineAddress {
    /// As it is shown to people: "unix:///var/run/docker.sock", "tcp://10.0.0.1:2376".
    std::string text;
    std::string socket_path;  ///< not empty: a Unix socket, and none of the rest holds
    std::string host;         ///< name or address, without brackets
    std::uint16_t port = 0;
    std::string path_prefix;  ///< raw; empty or "/engine", before every request path

    bool tls = false;
    bool verify = true;     ///< check the engine's certificate and name
    std::string ca_file;    ///< PEM; empty: the system's roots
    std::string cert_file;  ///< PEM; empty: no client certificate
    std::string key_file;   ///< PEM; empty with cert_file

    /// Whether the engine runs on this host, so that bind mounts name files of ours.
    [[nodiscard]] bool is_local() const { return !socket_path.empty(); }
};

/// Reads DOCKER_HOST and its companions. Schemes unix, tcp, http, https; tcp means TLS when
/// DOCKER_TLS_VERIFY or DOCKER_CERT_PATH is set. Without DOCKER_HOST the first socket that `exists`
/// of /var/run/docker.sock and /run/podman/podman.sock, else the first of them.
/// `invalid_argument` names the variable and the rule it breaks. Pure but for `exists`, which is
/// asked whether a file is there.
Result<EngineAddress> parse_engine_address(const EngineEnvironment& environment,
                                           const std::function<bool(const std::string&)>& exists);

/// The same for this process.
Result<EngineAddress> find_engine();

}  // namespace opensandbox::runtime::docker
