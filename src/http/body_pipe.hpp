#pragma once

#include "http/message.hpp"
#include "net/task.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace opensandbox::http {

/// Carries a request body from the event loop to a thread that reads it blocking, with a bounded
/// number of bytes in between.
class BodyPipe : public std::enable_shared_from_this<BodyPipe> {
  public:
    explicit BodyPipe(asio::any_io_executor executor) : executor_(executor), room_(executor) {}

    /// On the event loop: reads the body to its end and feeds the thread. Returns early when the
    /// thread no longer reads. A broken body reaches the thread as the error of its next read.
    Awaitable<void> pump(BodyReader& body);
    /// On the event loop: nothing more will come.
    void fail(Error error);

    /// On the thread: blocks; 0 at the end.
    Result<std::size_t> read(std::span<char> into);
    /// On the thread: will not read again.
    void close();

  private:
    void give(std::string piece);
    [[nodiscard]] bool is_full();
    [[nodiscard]] bool is_closed();

    asio::any_io_executor executor_;
    net::Event room_;  ///< event loop only
    std::mutex mutex_;
    std::condition_variable filled_;
    std::deque<std::string> pieces_;
    std::size_t front_read_ = 0;  ///< bytes of the first piece already taken
    std::size_t bytes_ = 0;
    bool ended_ = false;
    bool closed_ = false;
    std::optional<Error> error_;
};

}  // namespace opensandbox::http
