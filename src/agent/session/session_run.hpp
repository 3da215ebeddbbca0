#pragma once

#include "agent/process/reaper.hpp"
#include "agent/process/spawn.hpp"
#include "agent/session/request.hpp"
#include "agent/session/shell_state.hpp"
#include "agent/stream/event_pump.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::agent {

/// One run of a session: a shell of its own, its stream of events, and the state that it leaves.
class SessionRun : public std::enable_shared_from_this<SessionRun> {
  public:
    /// Most bytes of state that are taken from a shell.
    static constexpr std::size_t kMaxState = std::size_t{16} << 20;

    SessionRun(asio::any_io_executor executor, const std::string& session, SessionRequest request,
               LineForm form);
    SessionRun(const SessionRun&) = delete;
    SessionRun& operator=(const SessionRun&) = delete;
    ~SessionRun();

    [[nodiscard]] const SessionRequest& request() const { return request_; }
    [[nodiscard]] const std::shared_ptr<EventPump>& pump() const { return pump_; }

    /// Starts the shell that `shell` describes with `program` on descriptor 3; `on_exit` is called
    /// once, when it ended and its state was read, before end().
    Status start(Reaper& reaper, SpawnRequest shell, std::string_view program,
                 std::function<void()> on_exit);
    /// Kills the shell and all of its group. The stream will end with `why`.
    void kill(RunEnd why);
    bool signal_group(int number) const { return child_ && child_->signal_group(number); }

    /// What the shell left; empty when it was killed, wrote none, or more than kMaxState (see
    /// state_too_large()). After on_exit.
    [[nodiscard]] std::optional<ShellState> take_state(std::string_view mark);
    [[nodiscard]] bool state_too_large() const { return too_large_; }
    /// Writes a line to the stream's standard error.
    void say(std::string_view line);
    /// Ends the stream with what became of the shell.
    void end();
    /// Ends the stream of a run that never got a shell.
    void end(RunEnd why) { pump_->end(std::move(why)); }
    /// Nobody reads the outputs any more; what survived the shell may go on writing.
    void release_outputs();

  private:
    Status open_outputs(SpawnRequest& shell, std::array<UniqueFd, 3>& ends);
    void read_state();
    void arm_timeout();

    asio::any_io_executor executor_;
    SessionRequest request_;
    std::shared_ptr<EventPump> pump_;
    std::shared_ptr<OutputPipe> output_;
    std::shared_ptr<OutputPipe> error_;
    std::optional<OutputPipe> state_pipe_;
    std::string state_;
    bool too_large_ = false;
    std::shared_ptr<Child> child_;
    std::optional<RunEnd> killed_;
    std::optional<net::Deadline> timeout_;
};

}  // namespace opensandbox::agent
