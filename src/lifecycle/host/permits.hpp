#pragma once

#include "net/latch.hpp"

#include <deque>
#include <memory>
#include <utility>

namespace opensandbox::lifecycle {

/// Lets so many pass at a time; the others wait in line. For one event loop.
class Permits {
    struct State {
        asio::any_io_executor executor;
        std::size_t free;
        std::deque<std::shared_ptr<net::Latch>> waiting;
    };

  public:
    /// One permit, given back when destroyed.
    class Guard {
      public:
        explicit Guard(std::shared_ptr<State> state) : state_(std::move(state)) {}
        Guard(Guard&&) noexcept = default;
        Guard& operator=(Guard&&) = delete;
        ~Guard() {
            if (!state_) return;
            if (state_->waiting.empty()) {
                ++state_->free;
                return;
            }
            auto next = std::move(state_->waiting.front());
            state_->waiting.pop_front();
            next->open();
        }

      private:
        std::shared_ptr<State> state_;
    };

    Permits(asio::any_io_executor executor, std::size_t count)
        : state_(std::make_shared<State>(std::move(executor), count)) {}

    Awaitable<Guard> acquire() {
        auto state = state_;
        if (state->free > 0) {
            --state->free;
        } else {
            auto turn = std::make_shared<net::Latch>(state->executor);
            state->waiting.push_back(turn);
            co_await turn->wait();
        }
        co_return Guard(std::move(state));
    }
    [[nodiscard]] std::size_t waiting() const { return state_->waiting.size(); }

  private:
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::lifecycle
