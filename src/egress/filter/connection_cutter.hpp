#pragma once

#include "egress/rules/connection_cut.hpp"
#include "net/task.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace opensandbox::egress {

/// Cuts connections on another thread, again when that fails. One event loop; the pool outlives it.
class ConnectionCutter {
  public:
    ConnectionCutter(asio::any_io_executor executor, asio::thread_pool& pool)
        : executor_(std::move(executor)), pool_(pool) {}

    /// What is not allowed any more, asked again once the connections are known: what was opened
    /// meanwhile may be allowed since then. Nothing: there is no sandbox to cut any more.
    using Current = std::function<std::optional<rules::ConnectionCut>()>;
    /// Returns at once; `current` is called on the event loop. Where there is an interceptor, it is
    /// to end its connections first: what it sends to end them still needs the kernel's entries.
    void cut(rules::ConnectionCut what, Current current, bool after_interceptor);
    /// Returns when they are cut, or could not be.
    Awaitable<void> cut_now(rules::ConnectionCut what);
    /// Connections so far.
    [[nodiscard]] std::uint64_t count() const { return *count_; }

  private:
    asio::any_io_executor executor_;
    asio::thread_pool& pool_;
    std::shared_ptr<std::uint64_t> count_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace opensandbox::egress
