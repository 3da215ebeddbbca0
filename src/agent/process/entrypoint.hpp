#pragma once

#include "agent/agent.hpp"
#include "agent/command/output_pipe.hpp"
#include "agent/process/environment.hpp"
#include "agent/process/reaper.hpp"

#include <memory>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// The last bytes of an endless text. Takes memory as text comes, up to its capacity. Pure.
class OutputRing {
  public:
    explicit OutputRing(std::size_t capacity) : capacity_(capacity) {}
    void append(std::string_view bytes);
    /// What is kept, oldest first.
    [[nodiscard]] std::string contents() const;
    /// Bytes ever appended.
    [[nodiscard]] std::uint64_t total() const { return total_; }

  private:
    std::size_t capacity_;
    std::string bytes_;
    std::size_t begin_ = 0;  ///< where the oldest byte is, once full
    std::uint64_t total_ = 0;
};

/// The user's main process, owned by the agent as init: in a group of its own, standard input
/// /dev/null, the last 256 KiB of its output in memory.
class Entrypoint {
  public:
    /// Fails with an error that names the program and the reason. With `options.inherit_output` the
    /// process writes where the agent itself does.
    static Result<std::shared_ptr<Entrypoint>> start(asio::any_io_executor executor, Reaper& reaper,
                                                     const AgentOptions& options,
                                                     const Environment& environment);
    explicit Entrypoint(std::size_t ring_size) : ring_(ring_size) {}

    [[nodiscard]] Child& child() { return *child_; }
    [[nodiscard]] const OutputRing& output() const { return ring_; }

  private:
    void read_output();

    OutputRing ring_;
    std::shared_ptr<Child> child_;
    std::vector<OutputPipe> pipes_;  ///< none when the output is inherited
};

}  // namespace opensandbox::agent
