#pragma once

#include "agent/command/event.hpp"
#include "agent/command/line_splitter.hpp"
#include "agent/command/output_pipe.hpp"
#include "agent/command/registry.hpp"
#include "agent/process/spawn.hpp"
#include "http/exchange.hpp"
#include "net/task.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::agent {

/// One foreground command and its stream of events: reads both outputs as they come, ends the
/// stream when the process itself ended and what it had written was sent (execd contract 2.3, 3.2).
/// What is in memory is bounded; a slow reader slows the command. When the reader goes away the
/// command runs on and its output is dropped.
class Execution : public std::enable_shared_from_this<Execution> {
  public:
    /// Starts the process. A failure to do so becomes the stream's terminal event.
    static std::shared_ptr<Execution> start(asio::any_io_executor executor, Reaper& reaper,
                                            CommandRegistry& registry,
                                            std::shared_ptr<CommandRecord> record,
                                            SpawnRequest request, LineForm form,
                                            std::chrono::milliseconds timeout);

    /// Answers the exchange with the stream, to its end.
    static Awaitable<void> stream(std::shared_ptr<Execution> execution, http::Exchange& exchange);

    Execution(asio::any_io_executor executor, std::shared_ptr<CommandRecord> record, LineForm form);

  private:
    struct Output {
        Output(EventWriter::Stream k, LineForm form) : kind(k), splitter(form) {}
        EventWriter::Stream kind;
        LineSplitter splitter;
        std::optional<OutputPipe> pipe;
        std::chrono::steady_clock::time_point last_byte{};
    };

    Status launch(Reaper& reaper, CommandRegistry& registry, SpawnRequest& request);
    static Awaitable<void> drop_output(std::shared_ptr<Execution> execution);

    /// Reads once from each output that has something; without `encode` drops it.
    void collect(bool encode);
    void take(Output& from, bool encode);
    /// The process ended and all it wrote was taken.
    [[nodiscard]] bool finished() const;
    void write_end();
    /// Asks to be woken by output; true when some can be read already.
    bool arm_outputs();
    Awaitable<void> wait_for_more();
    /// Pings and unfinished lines that are due.
    void do_timed_work();
    /// Lets go of the outputs; survivors of the process may go on writing.
    void release_outputs();

    asio::any_io_executor executor_;
    std::shared_ptr<CommandRecord> record_;
    std::shared_ptr<Child> child_;  ///< empty when the start failed
    std::string start_error_;
    std::chrono::steady_clock::time_point started_;
    std::chrono::steady_clock::time_point next_ping_;
    Output output_;
    Output error_;
    EventWriter events_;
    std::string buffer_;
    std::shared_ptr<net::Event> wake_;
    std::optional<net::Deadline> timeout_;
};

}  // namespace opensandbox::agent
