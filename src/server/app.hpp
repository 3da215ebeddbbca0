#pragma once

#include "http/router.hpp"
#include "server/api/services.hpp"

namespace opensandbox::server {

/// The HTTP face of the server: request ids, CORS, authentication, limits, routes, metrics, access
/// log. One event loop; the services are borrowed.
class App {
  public:
    explicit App(Services& services);

    /// The handler of http::Server.
    Awaitable<void> handle(http::Exchange& exchange);

  private:
    Awaitable<void> answer(http::Exchange& exchange);
    Awaitable<void> route(http::Exchange& exchange);
    Awaitable<void> redirect_without_slash(http::Exchange& exchange);
    void record(http::Exchange& exchange, std::chrono::steady_clock::time_point begin);

    Services& services_;
    http::Router router_;
};

/// The inbound X-Request-ID, trimmed, when it is 1 to 128 visible characters; else 32 hex digits.
std::string choose_request_id(const http::RequestHead& request);

}  // namespace opensandbox::server
