#pragma once

#include "base/error.hpp"
#include "http/client.hpp"
#include "http/fields.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace opensandbox::egress {

/// Makes a connection to where a URL points to, over TLS if it says so.
using ConnectOrigin =
    std::function<Awaitable<Result<std::unique_ptr<net::Stream>>>(http::Origin origin)>;
/// As any program would, by the names and rules that hold for all.
Awaitable<Result<std::unique_ptr<net::Stream>>> connect_plainly(http::Origin origin);

/// One request on a connection of its own.
struct Post {
    http::Origin origin;
    std::string target;   ///< path and query
    http::Fields fields;  ///< beside those that say where it goes and how long it is
    std::string body;
    std::chrono::milliseconds timeout{5000};  ///< once there is a connection
};

/// The status of the answer; an error when there was none in time.
Awaitable<Result<int>> send_post(asio::any_io_executor executor, ConnectOrigin connect, Post post);

}  // namespace opensandbox::egress
