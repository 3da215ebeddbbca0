#pragma once

#include "net/stream.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace opensandbox::net {

/// Opens once and lets every waiter of one event loop pass.
class Latch {
  public:
    explicit Latch(asio::any_io_executor executor)
        : timer_(executor, asio::steady_timer::time_point::max()) {}

    void open() {
        open_ = true;
        timer_.cancel();
    }
    Awaitable<void> wait() {
        if (!open_) co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    }

  private:
    asio::steady_timer timer_;
    bool open_ = false;
};

}  // namespace opensandbox::net
