#pragma once

#include "egress/dns/settings.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::egress::dns {

/// TCP connections to one server that are used again (RFC 7766). Each carries one question at a
/// time; idle ones are closed after UpstreamSettings::connection_idle.
class UpstreamConnections {
  public:
    UpstreamConnections(asio::any_io_executor executor, UpstreamServer server,
                        std::chrono::seconds idle);

    /// Sends a message and returns the next that comes. A kept connection that turns out to be gone
    /// is replaced once. `timeout`, `unavailable`, `cancelled`.
    Awaitable<Result<std::string>> exchange(std::string message, std::chrono::milliseconds timeout);
    void close();
    /// Kept for the next question.
    [[nodiscard]] std::size_t idle() const;

  private:
    /// Outlives this object while an exchange is in flight.
    struct Pool {
        std::vector<std::shared_ptr<net::Stream>> streams;
        std::optional<net::Deadline> sweep;
        bool closed = false;
    };
    using Clock = std::chrono::steady_clock;
    static Awaitable<Result<std::shared_ptr<net::Stream>>> connect(asio::any_io_executor executor,
                                                                   UpstreamServer server,
                                                                   Clock::time_point end);
    static Awaitable<Result<std::string>> ask(std::shared_ptr<net::Stream> stream,
                                              std::string message, Clock::time_point end);
    static void keep(const asio::any_io_executor& executor, const std::shared_ptr<Pool>& pool,
                     std::shared_ptr<net::Stream> stream, std::chrono::seconds idle);

    asio::any_io_executor executor_;
    UpstreamServer server_;
    std::chrono::seconds idle_;
    std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

}  // namespace opensandbox::egress::dns
