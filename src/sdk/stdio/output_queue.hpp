#pragma once

#include "net/task.hpp"

#include <boost/asio/thread_pool.hpp>

#include <deque>
#include <string>
#include <string_view>

namespace opensandbox::sdk {

/// Passes a remote command's output to our own standard output and error, in the order it came. A
/// thread of its own writes, so that a terminal that was stopped never keeps signals from being
/// served; a reader that falls behind slows the command down.
class OutputQueue {
  public:
    explicit OutputQueue(asio::any_io_executor executor);
    ~OutputQueue();
    OutputQueue(const OutputQueue&) = delete;
    OutputQueue& operator=(const OutputQueue&) = delete;

    /// `fd` is 1 or 2.
    void append(int fd, std::string_view text);
    /// Waits while more than a megabyte is unwritten.
    Awaitable<void> make_room();
    /// Waits until all is written.
    Awaitable<void> flush();
    /// Whether a write failed: nobody reads any more. Later output is dropped.
    [[nodiscard]] bool reader_gone() const;
    /// Lets a flush() or make_room() return now; what is unwritten is lost.
    void give_up();

  private:
    struct State;
    std::shared_ptr<State> state_;
    asio::thread_pool thread_{1};
};

}  // namespace opensandbox::sdk
