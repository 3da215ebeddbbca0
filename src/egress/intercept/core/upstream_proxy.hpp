#pragma once

#include "base/error.hpp"
#include "net/stream.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// A proxy through which every connection to the outside goes (CONNECT, RFC 9110 section 9.3.6).
struct UpstreamProxy {
    bool tls = false;
    std::string host;  ///< name or address
    std::uint16_t port = 0;
    std::string authorization;  ///< the whole value of Proxy-Authorization; empty: none is sent
};

/// Reads `http(s)://host[:port]` (ports 80 and 443 unless given). `invalid_argument` for anything
/// else, user names included.
Result<UpstreamProxy> parse_upstream_proxy(std::string_view url, std::string_view authorization);

/// Has the proxy at the other end of `stream` connect to `target` ("host:port"). `bad_gateway` when
/// it refuses, answers anything but HTTP, or sends bytes before the target can have. The caller
/// sees to a deadline.
Awaitable<Status> connect_through(net::Stream& stream, UpstreamProxy proxy, std::string target);

}  // namespace opensandbox::egress
