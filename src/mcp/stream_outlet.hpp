#pragma once

#include "http/exchange.hpp"
#include "mcp/session.hpp"

#include <deque>

namespace opensandbox::mcp {

/// The answers to one POST: waits for them, and sends them as JSON when there is just one that
/// comes soon, else as an event stream.
class StreamOutlet : public Outlet {
  public:
    StreamOutlet(asio::any_io_executor executor, std::size_t expected)
        : arrived_(std::move(executor)), expected_(expected) {}
    void notify(std::string message) override;
    void reply(std::string message) override;
    void abandon() override;

    /// Until every answer was sent, or the client has gone (the calls go on then).
    Awaitable<void> deliver(http::Exchange& exchange);

  private:
    Awaitable<void> deliver_events(http::Exchange& exchange);

    net::Event arrived_;
    std::deque<std::string> messages_;
    std::size_t expected_;  ///< answers that have not come yet
    bool notified_ = false;
    bool closed_ = false;  ///< nobody takes them any more
};

/// One server-sent event.
std::string event_of(std::string_view message);

}  // namespace opensandbox::mcp
