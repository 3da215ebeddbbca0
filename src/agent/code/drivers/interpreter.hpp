#pragma once

#include "agent/code/drivers/control_frame.hpp"
#include "agent/code/drivers/warm_interpreter.hpp"
#include "agent/process/reaper.hpp"
#include "agent/process/spawn.hpp"
#include "agent/stream/output_pipe.hpp"
#include "net/stream.hpp"

#include <memory>
#include <optional>
#include <string>

namespace opensandbox::agent {

/// A running interpreter: a process in its own group with a control socket as descriptor 3. Its
/// output between runs is dropped, so that what goes on in it in the background does not block.
/// When it ends or this object goes, its whole group is killed.
class Interpreter : public std::enable_shared_from_this<Interpreter> {
  public:
    /// Starts the first program of the request that exists. Its outputs and descriptor 3 are set
    /// here; what the request passes comes behind. Fails as spawn().
    static Result<std::shared_ptr<Interpreter>> start(asio::any_io_executor executor,
                                                      Reaper& reaper, SpawnRequest request);
    /// Takes over one that runs; it must not have ended.
    static Result<std::shared_ptr<Interpreter>> adopt(asio::any_io_executor executor,
                                                      Reaper& reaper, WarmInterpreter warm);
    Interpreter(asio::any_io_executor executor, std::unique_ptr<net::Stream> control,
                OutputPipe output, OutputPipe error);
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;
    ~Interpreter();

    Awaitable<Status> send(ControlFrame::Kind kind, std::string payload);
    /// The next message; states that come before it are stored in `state`. `unavailable` when the
    /// process ended or closed the channel, `protocol` when it writes something else.
    Awaitable<Result<ControlMessage>> next(std::string& state);

    /// Where the output of a run begins.
    enum class From : unsigned char {
        now,   ///< with the code that is sent next: what came before belongs to nobody
        start  ///< with the process, which is the run
    };
    /// Its output for one run: until what this returns is gone.
    std::shared_ptr<OutputPipe> lend(EventWriter::Stream kind, From from = From::now);
    /// What of its standard error is there now, at most 4 KiB; before any run.
    std::string pending_error();

    [[nodiscard]] const std::shared_ptr<Child>& child() const { return child_; }
    [[nodiscard]] bool ended() const { return child_->status().has_value(); }
    /// Kills the group.
    void kill();
    /// Waits for the end of the process, and kills it when that takes longer than `grace`. Returns
    /// how it ended ("exit status 1", "signal: killed").
    Awaitable<std::string> wait_end(std::chrono::milliseconds grace);

  private:
    void watch(Reaper& reaper, pid_t pid);
    void drop_output(const std::shared_ptr<OutputPipe>& pipe);

    asio::any_io_executor executor_;
    std::unique_ptr<net::Stream> control_;
    std::shared_ptr<OutputPipe> output_;
    std::shared_ptr<OutputPipe> error_;
    ControlFrameReader frames_;
    std::uint64_t loans_ = 0;  ///< of either output; every run takes one of each
    std::shared_ptr<Child> child_;
    /// Keeps the group's number ours until the group was killed.
    std::optional<Reaper::Hold> hold_;
};

}  // namespace opensandbox::agent
