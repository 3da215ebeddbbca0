#pragma once

#include "net/task.hpp"

#include <deque>
#include <memory>
#include <utility>

namespace opensandbox::egress {

/// Lets coroutines of one event loop through one after another, in the order they came.
class SerialTurns {
    struct State;

  public:
    /// Holds the turn until destroyed.
    class Turn {
      public:
        explicit Turn(std::shared_ptr<State> state) : state_(std::move(state)) {}
        Turn(Turn&& other) noexcept = default;
        Turn& operator=(Turn&&) = delete;
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn();

      private:
        std::shared_ptr<State> state_;
    };

    explicit SerialTurns(asio::any_io_executor executor);
    /// Waits for those that came before.
    Awaitable<Turn> take();

  private:
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::egress
