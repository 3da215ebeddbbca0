#pragma once

#include "base/unique_fd.hpp"
#include "runtime/native/ground/event_loop.hpp"

#include <deque>
#include <functional>
#include <string>

namespace opensandbox::runtime::native {

/// What goes out on a non-blocking message socket, kept while its peer is too slow to take it.
class MessageQueue {
  public:
    /// Borrows loop and socket. `on_broken` is called when the peer is gone or does not read; it
    /// may destroy this.
    MessageQueue(EventLoop& loop, int socket, std::function<void()> on_broken)
        : loop_(&loop), socket_(socket), on_broken_(std::move(on_broken)) {}
    MessageQueue(const MessageQueue&) = delete;
    MessageQueue& operator=(const MessageQueue&) = delete;

    void send(std::string bytes);
    [[nodiscard]] bool empty() const { return waiting_.empty(); }

  private:
    void flush();

    EventLoop* loop_;
    int socket_;
    std::function<void()> on_broken_;
    std::deque<std::string> waiting_;
    /// A second descriptor, since one cannot be watched twice.
    UniqueFd writable_descriptor_;
    EventLoop::Watch writable_;
};

}  // namespace opensandbox::runtime::native
