#pragma once

#include "base/error.hpp"
#include "http/fields.hpp"
#include "http/message.hpp"
#include "model/endpoints.hpp"
#include "net/address_block.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How a request to a sandbox's port is changed on its way, and the answer on its way back
/// (lifecycle 3.3). Pure.
namespace opensandbox::server {

/// How a request set out, as far as it is known: what proxies in front of the server say of it.
struct Origination {
    std::string host;             ///< the Host that the client named
    std::string client;           ///< its address
    std::string scheme = "http";  ///< "http" or "https"
    bool authorized = false;      ///< it carries this server's API key
};

/// `peer` is who is at the other end of the connection. Its own word counts, unless it is one of
/// `trusted`: then the client is the last entry of X-Forwarded-For that no trusted proxy is, and
/// scheme and host are what the last entries of X-Forwarded-Proto and X-Forwarded-Host say. An
/// entry that cannot be read counts as not sent, with all before it. Never fails.
Origination origination_of(const http::Fields& fields, std::string_view peer,
                           const std::vector<net::AddressBlock>& trusted);

/// The port of the agent itself.
inline constexpr std::uint16_t kAgentPort = 44772;
/// The port that runtimes publish by itself (lifecycle 3.1).
inline constexpr std::uint16_t kHttpPort = 8080;
inline constexpr std::uint16_t kEgressPort = 18080;
inline constexpr const char* kEgressTokenField = "OPENSANDBOX-EGRESS-AUTH";

/// A raw request target cut behind its port: "/v1/sandboxes/x/proxy/80" and "/a%20b?c=d".
struct ProxyTarget {
    std::string prefix;
    std::string rest;  ///< raw: "", or starts with '/' or '?'
};
ProxyTarget split_proxy_target(std::string_view raw_target);

/// Where a request to a port goes (lifecycle 3.3).
struct ProxyRoute {
    friend bool operator==(const ProxyRoute&, const ProxyRoute&) = default;

    std::string host;
    std::uint16_t port;
    bool through_agent;  ///< which relays to the port, or is what is asked for
    std::string prefix;  ///< of paths there
};
/// To the sandbox's own address where it has one; behind a sidecar, or with `resolve_internal` off,
/// by what is published on the host. Empty: there is no way.
std::optional<ProxyRoute> choose_route(const model::Endpoints& endpoints, const std::string& id,
                                       std::uint16_t port, bool resolve_internal);
/// Where the egress API of a sandbox answers on the host that enforces for many: a path there.
std::string egress_path(const std::string& id);
/// The way through the agent, where it is another one: services that listen on the sandbox's
/// loopback only are reached by that alone.
std::optional<ProxyRoute> detour(const model::Endpoints& endpoints, const ProxyRoute& refused);

/// The raw target on that way: what follows the port, or through the agent's own proxy.
std::string route_target(const ProxyRoute& route, std::uint16_t port, std::string_view rest);

/// Drops credentials and forwarding fields of the client's, adds ours, and the agent's token where
/// the server vouches for the request.
void edit_proxy_request(http::Fields& fields, const ProxyRoute& route, std::uint16_t port,
                        const std::string& token, const Origination& from);

/// What the agent says when it could not reach the port behind it (in its own 502): the failure,
/// told apart from a 502 of the service itself. Empty for every other answer.
std::optional<Error> agent_failure(const http::ResponseHead& head);

/// A `Location` that starts with one '/' stays behind the proxy.
void rewrite_location(http::Fields& fields, std::string_view prefix);

// What a sandbox answers through the path proxy comes from the API's own address, and is a
// stranger there: browsers give its pages an origin of their own, which can neither read nor keep
// anything of the API's. Programs get what the sandbox said, but for a few fields.

/// Whether a browser asks: what it sends by itself on every request, and pages cannot change.
bool is_browser(const http::RequestHead& request);

/// Whether the answer would become a service worker, which outlives its page and sees what others
/// of the origin ask for.
bool is_service_worker(const http::RequestHead& request);
/// 403, naming what to use instead.
http::Response no_service_worker();

/// Changes an answer of a sandbox's: no field with effect beyond the answer itself, and a policy
/// that gives a page an opaque origin. Of what a browser would keep under the API's address nothing
/// passes `to_browser`.
void isolate_page(http::Fields& fields, bool to_browser);

}  // namespace opensandbox::server
