#pragma once

#include "net/stream.hpp"

#include <boost/asio/signal_set.hpp>

#include <functional>

namespace opensandbox::cli {

/// SIGINT, SIGTERM and SIGHUP of this process. A command that has something to undo handles the
/// first one, else it ends the program; a second one ends it at once.
class Interrupts {
  public:
    /// `end` ends the program with the given exit code.
    Interrupts(asio::any_io_executor executor, std::function<void(int exit_code)> end);

    /// Calls `handler` instead of ending the program, until reset with an empty one.
    void handle(std::function<void()> handler) { handler_ = std::move(handler); }
    /// What a second signal does before it ends the program at once: brings the terminal back.
    void before_forced_end(std::function<void()> undo) { before_forced_end_ = std::move(undo); }
    /// Makes the next signal a first one again, for programs that live on after Ctrl-C.
    void forget() { received_ = 0; }
    /// The signal that came first; 0 when none did.
    [[nodiscard]] int received() const { return received_; }

  private:
    void wait();

    asio::signal_set signals_;
    std::function<void(int)> end_;
    std::function<void()> handler_;
    std::function<void()> before_forced_end_;
    int received_ = 0;
};

}  // namespace opensandbox::cli
