#pragma once

#include "agent/command/registry.hpp"
#include "agent/process/spawn.hpp"
#include "agent/stream/event_pump.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::agent {

/// One foreground command and its stream of events, which ends when the process itself ended and
/// what it had written was sent (execd contract 2.3, 3.2). When the reader goes away the command
/// runs on; a reader can come back to its output.
class Execution : public std::enable_shared_from_this<Execution> {
  public:
    /// Bytes of the latest output that a reader can come back to.
    static constexpr std::size_t kKept = std::size_t{512} * 1024;

    /// Starts the process. A failure to do so becomes the stream's terminal event.
    static std::shared_ptr<Execution> start(asio::any_io_executor executor, Reaper& reaper,
                                            CommandRegistry& registry,
                                            const std::shared_ptr<CommandRecord>& record,
                                            SpawnRequest request, LineForm form,
                                            std::chrono::milliseconds timeout);

    /// Answers the exchange with the stream from `offset` (bytes of both outputs together) to its
    /// end, or until another reader takes this one's place.
    static Awaitable<void> stream(std::shared_ptr<Execution> execution, http::Exchange& exchange,
                                  std::uint64_t offset = 0);

    Execution(asio::any_io_executor executor, const std::string& id, LineForm form);
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;
    ~Execution();

    /// What of the output can still be had.
    [[nodiscard]] const Replay& replay() const { return *pump_->replay(); }

  private:
    Status launch(Reaper& reaper, CommandRegistry& registry,
                  const std::shared_ptr<CommandRecord>& record, SpawnRequest& request);
    static Awaitable<void> run_unread(std::shared_ptr<Execution> execution);
    /// Lets go of the outputs; survivors of the process may go on writing.
    void release_outputs();

    asio::any_io_executor executor_;
    std::shared_ptr<EventPump> pump_;
    std::shared_ptr<OutputPipe> output_;
    std::shared_ptr<OutputPipe> error_;
    std::shared_ptr<Child> child_;  ///< empty when the start failed
    std::optional<net::Deadline> timeout_;
};

/// Starts a process whose two outputs go into the pump. They stay the caller's, to be let go of.
Result<pid_t> spawn_into(EventPump& pump, asio::any_io_executor executor, SpawnRequest& request,
                         std::shared_ptr<OutputPipe>& output, std::shared_ptr<OutputPipe>& error);

/// The terminal event of a process that ended so (execd contract 3.2).
RunEnd end_of(const ExitStatus& status);

}  // namespace opensandbox::agent
