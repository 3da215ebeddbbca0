#pragma once

#include "agent/code/jupyter/message.hpp"
#include "agent/stream/event_pump.hpp"
#include "net/task.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::agent::jupyter {

/// One execute_request and what became of it: turns the kernel's messages into events of the pump
/// (execd contract 5.3). Messages of other requests are not its business. It is over when both its
/// execute_reply and its `idle` have come, in any order.
class Run {
  public:
    Run(asio::any_io_executor executor, std::string message_id, std::shared_ptr<EventPump> pump);

    [[nodiscard]] const std::string& message_id() const { return message_id_; }

    /// Takes a message; waits while the pump is full, so that a slow reader slows the kernel.
    Awaitable<void> take(Message message);
    /// The connection that its messages come through is gone.
    void connection_lost();

    /// Waits for a message or the loss of the connection; false when the time passed first.
    Awaitable<bool> changed(std::chrono::nanoseconds limit);
    /// Whether the connection was lost since the last call.
    [[nodiscard]] bool take_loss() { return std::exchange(lost_, false); }

    [[nodiscard]] bool over() const { return died_ || (replied_ && idle_); }
    /// One of the two messages that end it has come.
    [[nodiscard]] bool half_over() const { return replied_ || idle_; }
    /// A message is being handed to a slow reader.
    [[nodiscard]] bool busy() const { return taking_; }
    /// Messages of this run so far.
    [[nodiscard]] std::size_t heard() const { return heard_; }
    /// Its kernel ended: nothing more comes.
    [[nodiscard]] bool died() const { return died_; }

    /// The end to tell, once.
    [[nodiscard]] RunEnd take_end();

  private:
    Awaitable<void> forward(Message message);
    Awaitable<void> forward_text(json::object content);
    void forward_result(const Message& message);
    void take_failure(const json::object& content);
    void take_reply(const json::object& content);
    void take_state(const Message& message, bool ours);

    std::string message_id_;
    std::shared_ptr<EventPump> pump_;
    net::Event changed_;
    std::optional<RunEnd> failure_;
    std::size_t heard_ = 0;
    bool replied_ = false;
    bool idle_ = false;
    bool died_ = false;
    bool lost_ = false;
    bool taking_ = false;
};

}  // namespace opensandbox::agent::jupyter
