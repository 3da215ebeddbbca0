#include "server/proxy/proxy_rules.hpp"

#include "http/access_path.hpp"

#include <array>

namespace opensandbox::server {
namespace {

/// Never passed on: credentials of this server and of the browser, what other proxies said.
constexpr std::array kDropped{
    "Host",
    "Authorization",
    "Cookie",
    "OPEN-SANDBOX-API-KEY",
    "OpenSandbox-Secure-Access",
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "OpenSandbox-Access-Renew",
    "Proxy-Authenticate",
    "Proxy-Authorization",
};

}  // namespace

ProxyTarget split_proxy_target(std::string_view raw) {
    std::size_t segments = raw.starts_with("/v1/") ? 5 : 4;
    std::size_t at = 0;
    for (std::size_t i = 0; i < segments && at < raw.size(); ++i) {
        at = raw.find_first_of("/?", at + 1);
        if (at == std::string_view::npos) at = raw.size();
    }
    return {std::string(raw.substr(0, at)), std::string(raw.substr(at))};
}

std::string egress_path(const std::string& id) {
    return "/sandboxes/" + http::percent_encode(id);
}

std::optional<ProxyRoute> choose_route(const model::Endpoints& endpoints, const std::string& id,
                                       std::uint16_t port, bool resolve_internal) {
    const model::AgentAddress& agent = endpoints.agent;
    if (port == kEgressPort && endpoints.egress_port != 0) {
        ProxyRoute route(agent.host, endpoints.egress_port, false);
        route.prefix = egress_path(id);
        return route;
    }
    if (endpoints.own_address) return ProxyRoute(endpoints.internal_host, port, port == kAgentPort);
    bool through_sidecar = !endpoints.egress_token.empty();
    bool direct = resolve_internal && !through_sidecar;
    if (endpoints.host_network) {
        if (port == kAgentPort && agent.port != 0) return ProxyRoute(agent.host, agent.port, true);
        return ProxyRoute("127.0.0.1", port, false);
    }
    // An agent that is published alone need not listen on the sandbox's own address.
    bool only_published = port == kAgentPort && agent.port != 0 && endpoints.http_port == 0;
    if (direct && !endpoints.internal_host.empty() && !only_published) {
        return ProxyRoute(endpoints.internal_host, port, port == kAgentPort);
    }
    if (through_sidecar) {
        for (const auto& [inside, outside] : endpoints.published) {
            if (inside == port) return ProxyRoute(agent.host, outside, false);
        }
    }
    if (agent.port == 0) return std::nullopt;
    if (port == kHttpPort && endpoints.http_port != 0) {
        return ProxyRoute(agent.host, endpoints.http_port, false);
    }
    return ProxyRoute(agent.host, agent.port, true);
}

std::optional<ProxyRoute> detour(const model::Endpoints& endpoints, const ProxyRoute& refused) {
    const model::AgentAddress& agent = endpoints.agent;
    if (refused.through_agent || !refused.prefix.empty() || endpoints.host_network ||
        endpoints.own_address || agent.port == 0)
        return std::nullopt;
    return ProxyRoute(agent.host, agent.port, true);
}

std::string route_target(const ProxyRoute& route, std::uint16_t port, std::string_view rest) {
    std::string target = route.prefix;
    if (route.through_agent && port != kAgentPort) target += "/proxy/" + std::to_string(port);
    if (!rest.starts_with('/')) target += '/';
    target += rest;
    return target;
}

void edit_proxy_request(http::Fields& fields, const ProxyRoute& route, std::uint16_t port,
                        const std::string& token, const Origination& from) {
    for (const char* name : kDropped)
        fields.erase(name);
    // The service sees the address under which it listens; the agent relays it as it is.
    bool relayed = route.through_agent && port != kAgentPort;
    if (relayed) fields.set("Host", "127.0.0.1:" + std::to_string(port));
    fields.set("X-Forwarded-Proto", from.scheme);
    if (!from.host.empty()) fields.set("X-Forwarded-Host", from.host);
    if (!from.client.empty()) fields.set("X-Forwarded-For", from.client);
    if (token.empty() || !route.through_agent) return;
    // The agent's own routes act inside the sandbox: they need the token from the client, or the
    // server's key. Other ports are open to whoever knows the id; the agent only relays.
    if (relayed || (from.authorized && !fields.has(http::kAccessTokenField)))
        fields.set(http::kAccessTokenField, token);
}

std::optional<Error> agent_failure(const http::ResponseHead& head) {
    auto kind = head.fields.get("X-EXECD-PROXY-ERROR");
    if (!kind || head.status != 502) return std::nullopt;
    if (*kind == to_string(ErrorCode::unavailable)) {
        return Error(ErrorCode::unavailable, "nothing answers on the port");
    }
    if (*kind == to_string(ErrorCode::timeout))
        return Error(ErrorCode::timeout, "the port is silent");
    return Error(ErrorCode::bad_gateway,
                 "the service on the port broke off or does not speak HTTP");
}

void rewrite_location(http::Fields& fields, std::string_view prefix) {
    auto location = fields.get("Location");
    if (!location || !location->starts_with('/') || location->starts_with("//")) return;
    std::string rewritten = std::string(prefix) + std::string(*location);
    fields.set("Location", std::move(rewritten));
}

}  // namespace opensandbox::server
