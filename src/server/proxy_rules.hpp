#pragma once

#include "base/error.hpp"
#include "http/message.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// How a request to a sandbox's port is changed on its way (lifecycle 3.3). Pure.
namespace opensandbox::server {

/// The port of the agent itself.
inline constexpr std::uint16_t kAgentPort = 44772;
inline constexpr const char* kTokenField = "X-EXECD-ACCESS-TOKEN";

/// A raw request target cut behind its port: "/v1/sandboxes/x/proxy/80" and "/a%20b?c=d".
struct ProxyTarget {
    std::string prefix;
    std::string rest;  ///< raw: "", or starts with '/' or '?'
};
ProxyTarget split_proxy_target(std::string_view raw_target);

/// The target for the agent: itself, or through its own proxy for every other port.
std::string agent_target(std::uint16_t port, std::string_view rest);

/// What surrounds a request on its way in.
struct Origination {
    std::string host;      ///< inbound Host
    std::string peer;      ///< address of the client
    bool trusted = false;  ///< it carries this server's API key
};

/// Drops credentials and forwarding fields of the client's, adds ours, and the agent's token where
/// the server vouches for the request.
void edit_proxy_request(http::Fields& fields, std::uint16_t port, const std::string& token,
                        const Origination& from);

/// What the agent says when it could not reach the port behind it (in its own 502): the failure,
/// told apart from a 502 of the service itself. Empty for every other answer.
std::optional<Error> agent_failure(const http::ResponseHead& head);

/// A `Location` that starts with one '/' stays behind the proxy.
void rewrite_location(http::Fields& fields, std::string_view prefix);

}  // namespace opensandbox::server
