#pragma once

#include "net/latch.hpp"

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

namespace opensandbox::lifecycle {

/// One lock per sandbox id: what changes one sandbox takes turns, in order of arrival, while
/// different sandboxes do not wait for each other. For one event loop.
class KeyedMutex {
    struct State {
        asio::any_io_executor executor;
        std::unordered_map<std::string, std::deque<std::shared_ptr<net::Latch>>> held;
    };

  public:
    /// Holds the lock of one key until destroyed.
    class Guard {
      public:
        Guard() = default;
        Guard(std::shared_ptr<State> state, std::string key)
            : state_(std::move(state)), key_(std::move(key)) {}
        Guard(Guard&&) noexcept = default;
        Guard& operator=(Guard&&) = delete;
        ~Guard();

      private:
        std::shared_ptr<State> state_;
        std::string key_;
    };

    explicit KeyedMutex(asio::any_io_executor executor);
    Awaitable<Guard> lock(std::string key);
    /// Keys held now.
    [[nodiscard]] std::size_t size() const { return state_->held.size(); }

  private:
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::lifecycle
