#pragma once

#include "net/task.hpp"

#include <deque>
#include <memory>

namespace opensandbox::agent {

/// One after the other, in the order of asking.
class RunQueue : public std::enable_shared_from_this<RunQueue> {
  public:
    /// Held by whoever has the turn; the next one gets it when the last copy is gone.
    using Turn = std::shared_ptr<void>;

    explicit RunQueue(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    Awaitable<Turn> take() {
        auto self = shared_from_this();
        if (busy_) {
            auto called = std::make_shared<net::Event>(executor_);
            waiting_.push_back(called);
            co_await called->wait();
        }
        busy_ = true;
        Turn turn(this, [self](void*) { self->release(); });
        co_return turn;
    }
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

  private:
    /// The turn goes straight to the next one: nobody can get in between.
    void release() {
        if (waiting_.empty()) {
            busy_ = false;
            return;
        }
        auto next = std::move(waiting_.front());
        waiting_.pop_front();
        next->notify();
    }

    asio::any_io_executor executor_;
    std::deque<std::shared_ptr<net::Event>> waiting_;
    bool busy_ = false;
};

}  // namespace opensandbox::agent
