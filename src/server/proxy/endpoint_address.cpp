#include "server/proxy/endpoint_address.hpp"

#include "base/unique_fd.hpp"
#include "http/access_path.hpp"
#include "http/message.hpp"
#include "http/sdk_agent.hpp"
#include "server/auth.hpp"
#include "server/proxy/proxy_rules.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <unistd.h>

namespace opensandbox::server {
namespace {

bool is_wildcard(std::string_view host) {
    return host.empty() || host == "0.0.0.0" || host == "::";
}

std::string_view without_scheme(std::string_view eip) {
    auto scheme = eip.find("://");
    if (scheme != std::string_view::npos) eip.remove_prefix(scheme + 3);
    while (eip.ends_with('/'))
        eip.remove_suffix(1);
    return eip;
}

}  // namespace

std::string public_host(const Config& config, bool in_container,
                        const std::function<std::string()>& outward_address) {
    if (!config.eip.empty()) return config.eip;
    bool local = is_wildcard(config.host) || is_loopback(config.host);
    if (local && in_container && !config.host_ip.empty()) return config.host_ip;
    if (!is_wildcard(config.publish_host)) return config.publish_host;
    if (is_wildcard(config.host)) return outward_address();
    return config.host;
}

std::optional<DirectEndpoint> direct_endpoint(const model::Endpoints& endpoints,
                                              std::string_view public_host, const std::string& id,
                                              std::uint16_t port) {
    if (port == kEgressPort && endpoints.egress_port != 0) {
        return DirectEndpoint(join_host_port(public_host, endpoints.egress_port) + egress_path(id),
                              false);
    }
    std::uint16_t agent = endpoints.agent.port;
    if (endpoints.own_address) {
        return DirectEndpoint(join_host_port(endpoints.internal_host, port), port == kAgentPort);
    }
    if (endpoints.host_network) {
        return DirectEndpoint(join_host_port(public_host, port), port == kAgentPort);
    }
    for (const auto& [inside, outside] : endpoints.published) {
        if (inside == port) return DirectEndpoint(join_host_port(public_host, outside), false);
    }
    bool publishes_ports = endpoints.http_port != 0 || port == kAgentPort;
    if (agent == 0 || !publishes_ports) return std::nullopt;
    if (port == kHttpPort) {
        return DirectEndpoint(join_host_port(public_host, endpoints.http_port), false);
    }
    return DirectEndpoint(join_host_port(public_host, agent) + "/proxy/" + std::to_string(port),
                          true);
}

std::string join_host_port(std::string_view host, std::uint16_t port) {
    bool bare_ipv6 = host.find(':') != host.rfind(':') && !host.starts_with('[');
    std::string joined = bare_ipv6 ? "[" + std::string(host) + "]" : std::string(host);
    return joined + ":" + std::to_string(port);
}

bool ignores_endpoint_headers(std::string_view user_agent) {
    auto sdk = http::parse_sdk_agent(user_agent);
    if (!sdk) return false;
    if (sdk->language == "kotlin") return sdk->older_than(1, 1, 0);
    if (sdk->language == "python") return sdk->older_than(0, 1, 5);
    return false;
}

std::string with_access_path(std::string endpoint, std::string_view token,
                             std::optional<std::uint16_t> resolved) {
    std::string tail = resolved ? "/proxy/" + std::to_string(*resolved) : std::string();
    endpoint.insert(endpoint.size() - tail.size(), http::access_path(token));
    return endpoint;
}

std::string eip_path(std::string_view eip) {
    std::string_view rest = without_scheme(eip);
    auto slash = rest.find('/');
    return slash == std::string_view::npos ? std::string() : std::string(rest.substr(slash));
}

std::string proxied_endpoint(std::string_view eip, std::string_view request_host,
                             std::string_view mount, std::string_view sandbox_id,
                             std::uint16_t port) {
    std::string base;
    if (eip.empty()) {
        base = std::string(request_host) + std::string(mount);
    } else {
        base = without_scheme(eip);
        if (eip_path(eip).empty()) base += mount;
    }
    return base + "/sandboxes/" + http::percent_encode(sandbox_id) + "/proxy/" +
           std::to_string(port);
}

bool in_container() {
    if (::access("/.dockerenv", F_OK) == 0 || ::access("/run/.containerenv", F_OK) == 0)
        return true;
    for (const char* name : {"container", "CONTAINER"}) {
        const char* value = std::getenv(name);
        if (!value) continue;
        for (std::string_view kind :
             {"podman", "docker", "oci", "lxc", "lxc-libvirt", "systemd-nspawn"}) {
            if (value == kind) return true;
        }
    }
    return false;
}

std::string outward_ipv4() {
    // Connecting a datagram socket sends nothing; it only asks the kernel for the route.
    UniqueFd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in remote{};
    remote.sin_family = AF_INET;
    remote.sin_port = htons(80);
    ::inet_pton(AF_INET, "8.8.8.8", &remote.sin_addr);
    sockaddr_in local{};
    socklen_t size = sizeof local;
    char text[INET_ADDRSTRLEN];
    if (probe && ::connect(probe.get(), reinterpret_cast<sockaddr*>(&remote), sizeof remote) == 0 &&
        ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&local), &size) == 0 &&
        ::inet_ntop(AF_INET, &local.sin_addr, text, sizeof text)) {
        return text;
    }
    return "127.0.0.1";
}

}  // namespace opensandbox::server
