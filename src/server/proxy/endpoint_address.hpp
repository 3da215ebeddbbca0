#pragma once

#include "model/endpoints.hpp"
#include "server/config/config.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// What clients are told to connect to (lifecycle 3.1). Pure but for the two that look at the host.
namespace opensandbox::server {

/// The host under which agents are reached from outside: server.eip; else the address they are
/// published on when it is a concrete one; else docker.host_ip in a container; else, published on
/// the wildcard, the configured host or this machine's outward address.
std::string public_host(const Config& config, bool in_container,
                        const std::function<std::string()>& outward_address);

/// Where clients reach a port without this server.
struct DirectEndpoint {
    std::string address;  ///< host:port[/path]
    bool through_agent;   ///< which wants its token
};
/// The table of lifecycle 3.1: the port itself in the host's network, 8080 by its published port,
/// others by way of the agent, which answers for its own port itself; 18080 where the host enforces
/// for many by its API there. Empty where a runtime publishes the agent alone: other ports are
/// reached through the server.
std::optional<DirectEndpoint> direct_endpoint(const model::Endpoints& endpoints,
                                              std::string_view public_host, const std::string& id,
                                              std::uint16_t port);

/// `host:port`; an IPv6 address gets its brackets.
std::string join_host_port(std::string_view host, std::uint16_t port);

/// The path through this server to a port: `<base>/sandboxes/<id>/proxy/<port>`. `base` is the
/// request's Host and mount ("" or "/v1"), or server.eip, which replaces the mount when it has a
/// path of its own.
std::string proxied_endpoint(std::string_view eip, std::string_view request_host,
                             std::string_view mount, std::string_view sandbox_id,
                             std::uint16_t port);

/// Whether a client, by its User-Agent, is a published one that does not send the headers of an
/// endpoint: Kotlin 1.0, Python before 0.1.5.
bool ignores_endpoint_headers(std::string_view user_agent);
/// The endpoint with the agent's token in its path (http/access_path.hpp); before the
/// "/proxy/<resolved>" at its end that is for the agent to resolve, if any.
std::string with_access_path(std::string endpoint, std::string_view token,
                             std::optional<std::uint16_t> resolved);

/// The path part of server.eip ("/sandboxes-behind"), empty when it has none.
std::string eip_path(std::string_view eip);

/// Whether this process runs in a container.
bool in_container();
/// The address this machine uses towards the world, "127.0.0.1" when it has none.
std::string outward_ipv4();

}  // namespace opensandbox::server
