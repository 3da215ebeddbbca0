#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "net/stream.hpp"

#include <functional>
#include <memory>
#include <span>

namespace opensandbox::agent {

/// The reading end of one output stream of a process, on the event loop.
class OutputPipe {
  public:
    /// Makes a pipe and puts the end for the process into `write_end`. `on_ready` is called on the
    /// event loop after arm(), when something can be read.
    static Result<OutputPipe> open(asio::any_io_executor executor, UniqueFd& write_end,
                                   std::function<void()> on_ready = {});
    /// Takes over a descriptor that does not block: the agent's end of a terminal.
    static OutputPipe adopt(asio::any_io_executor executor, UniqueFd read_end,
                            std::function<void()> on_ready);
    OutputPipe(OutputPipe&&) noexcept;
    OutputPipe& operator=(OutputPipe&&) = delete;
    ~OutputPipe();

    /// Whether a read may give something now.
    [[nodiscard]] bool ready() const;
    /// Whether all that is wanted was read.
    [[nodiscard]] bool ended() const;
    /// Reads once without waiting; 0 when there is nothing now or no more. Needs arm() to be ready
    /// again, unless limit_to_present() was called.
    std::size_t read(std::span<char> into);
    /// Whether bytes are in the pipe at this moment.
    [[nodiscard]] bool holds_bytes() const;
    /// Lets the next read go ahead without arm(): the caller knows that something came.
    void read_again();
    /// Asks for one call of `on_ready`; does nothing while one is due.
    void arm();
    /// Another listener; empty for none. For pipes that outlive one run.
    void on_ready(std::function<void()> listener);
    /// The process ended: only what is in the pipe by now is still wanted. Others may hold the
    /// writing end for ever.
    void limit_to_present();
    /// The next run of a lasting process: everything is wanted again.
    void want_all();
    /// Reads and drops whatever the survivors of the process still write, so that they neither
    /// block nor die of a closed pipe; lets go when the last one closes it. Ends this object's use.
    void discard_rest();

  private:
    struct State;
    explicit OutputPipe(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::agent
