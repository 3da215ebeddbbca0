#pragma once

#include "net/task.hpp"

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace opensandbox::lifecycle {

/// Wakes who waits for news of a sandbox. For one event loop.
class ChangeBoard {
  public:
    explicit ChangeBoard(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    void post(std::string_view id) {
        for (auto [at, end] = watches_.equal_range(id); at != end; ++at)
            at->second->notify();
    }
    /// Wakes everybody.
    void post_all() {
        for (auto& [id, event] : watches_)
            event->notify();
    }

    /// Sees what was posted since it was made, one waiter at a time.
    class Watch {
      public:
        Watch(ChangeBoard& board, std::string id)
            : board_(board),
              event_(board.executor_),
              at_(board.watches_.emplace(std::move(id), &event_)) {}
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        ~Watch() { board_.watches_.erase(at_); }

        /// False when the time passed first.
        Awaitable<bool> wait_for(std::chrono::nanoseconds duration) {
            return event_.wait_for(duration);
        }

      private:
        ChangeBoard& board_;
        net::Event event_;
        std::multimap<std::string, net::Event*, std::less<>>::iterator at_;
    };

  private:
    asio::any_io_executor executor_;
    std::multimap<std::string, net::Event*, std::less<>> watches_;
};

}  // namespace opensandbox::lifecycle
