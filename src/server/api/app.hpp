#pragma once

#include "base/identifier.hpp"
#include "http/router.hpp"
#include "server/api/services.hpp"

#include <memory>

namespace opensandbox::server {

/// The HTTP face of the server: request ids, CORS, authentication, limits, routes, metrics, access
/// log. One event loop.
class App {
  public:
    explicit App(std::unique_ptr<Services> services);

    /// For http::Server. Keeps the app alive as long as there are requests: one that is cut off at
    /// the end of the event loop still finds it.
    static http::Handler handler(std::shared_ptr<App> app);

  private:
    Awaitable<void> handle(http::Exchange& exchange);
    Awaitable<void> answer(http::Exchange& exchange);
    /// Finds out whose request it is; answers and returns false when it is nobody's.
    Awaitable<bool> admit_tenant(http::Exchange& exchange);
    /// Answers for sandboxes of other tenants as for unknown ones; true when it did.
    Awaitable<bool> hide_foreign(http::Exchange& exchange);
    /// Answers requests to the API itself, as many as there is room for.
    Awaitable<void> control(http::Exchange& exchange);
    Awaitable<void> route(http::Exchange& exchange);
    Awaitable<void> redirect_without_slash(http::Exchange& exchange);
    void record(http::Exchange& exchange, std::chrono::steady_clock::time_point begin);

    std::unique_ptr<Services> owned_;
    Services& services_;
    http::Router router_;
    HexIds request_ids_;
};

/// The inbound X-Request-ID, trimmed, when it is 1 to 128 visible characters; else 32 hex digits.
std::string choose_request_id(const http::RequestHead& request, HexIds& ids);

}  // namespace opensandbox::server
