#pragma once

#include "base/unique_fd.hpp"
#include "net/stream.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace opensandbox::agent {

/// Bytes on their way into a process. Writes what the process takes at once and keeps the rest.
class InputQueue {
  public:
    /// Past so many bytes the queue is full; who pushes should then wait.
    static constexpr std::size_t kMuch = std::size_t{256} * 1024;

    InputQueue(const asio::any_io_executor& executor, UniqueFd fd);
    InputQueue(const InputQueue&) = delete;
    InputQueue& operator=(const InputQueue&) = delete;
    ~InputQueue();

    void push(std::string_view bytes);
    [[nodiscard]] bool full() const;
    /// The process cannot be written to any more; what was kept is dropped.
    [[nodiscard]] bool failed() const;
    /// Called on the event loop when the queue is not full any more or failed; empty for nobody.
    void on_change(std::function<void()> listener);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::agent
