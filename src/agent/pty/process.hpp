#pragma once

#include "agent/process/reaper.hpp"
#include "agent/process/spawn.hpp"
#include "agent/pty/input_queue.hpp"
#include "agent/stream/output_pipe.hpp"
#include "agent/stream/replay.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>

namespace opensandbox::agent {

/// Columns and rows of a terminal.
struct TerminalSize {
    std::uint16_t columns;
    std::uint16_t rows;
};

/// Both ends of a pseudo-terminal: the agent's and the process's.
struct Terminal {
    UniqueFd master;
    UniqueFd slave;
};

/// Opens one of `size`, for UTF-8. Fails where the sandbox has no devpts or no terminal is left.
Result<Terminal> open_terminal(TerminalSize size);

/// Sets the size; the foreground processes get SIGWINCH when it changed.
Status resize_terminal(int master, TerminalSize size);

/// One run of a session's shell: the process and what connects it, a terminal or three pipes.
class PtyProcess {
  public:
    enum class Mode : unsigned char { terminal, pipes };

    /// `request` says what to start, without its standard streams. `changed` is called on the event
    /// loop when there is output to read (after arm()) or the process ended.
    static Result<std::shared_ptr<PtyProcess>> start(const asio::any_io_executor& executor,
                                                     Reaper& reaper, SpawnRequest request,
                                                     Mode mode, std::function<void()> changed);
    PtyProcess(Mode mode, std::function<void()> changed)
        : mode_(mode), changed_(std::move(changed)) {}
    PtyProcess(const PtyProcess&) = delete;
    PtyProcess& operator=(const PtyProcess&) = delete;
    ~PtyProcess();

    [[nodiscard]] Mode mode() const { return mode_; }
    [[nodiscard]] const Child& child() const { return *child_; }
    [[nodiscard]] bool ended() const { return child_->status().has_value(); }
    [[nodiscard]] InputQueue& input() { return *input_; }

    /// Reads once from each output that is ready into `kept`, by way of `buffer`. False when there
    /// was nothing.
    bool read(Replay& kept, std::span<char> buffer);
    /// Asks for a call of `changed` when more can be read.
    void arm();
    /// It ended and what it had written was read. What survivors write later is not waited for.
    [[nodiscard]] bool drained() const;

    /// To the shell's group; in a terminal also to the foreground job. There SIGINT and SIGQUIT go
    /// only to the job, as those of the keyboard do.
    void signal(int number) const;
    /// Nothing happens in pipe mode.
    void resize(TerminalSize size) const;

  private:
    struct Output {
        EventWriter::Stream kind;
        OutputPipe pipe;
    };

    Status connect_terminal(const asio::any_io_executor& executor, SpawnRequest& request,
                            std::vector<UniqueFd>& theirs);
    Status connect_pipes(const asio::any_io_executor& executor, SpawnRequest& request,
                         std::vector<UniqueFd>& theirs);
    void begin_drain();
    [[nodiscard]] pid_t foreground_job() const;

    Mode mode_;
    std::function<void()> changed_;
    std::shared_ptr<Child> child_;
    UniqueFd master_;  ///< terminal mode
    std::unique_ptr<InputQueue> input_;
    std::vector<Output> outputs_;
    bool draining_ = false;
    std::size_t left_ = 0;  ///< terminal mode: so much is still read after the end
};

}  // namespace opensandbox::agent
