#pragma once

#include "agent/agent.hpp"
#include "agent/process/environment.hpp"
#include "agent/process/reaper.hpp"
#include "agent/stream/output_log.hpp"
#include "agent/stream/output_pipe.hpp"

#include <memory>
#include <string>
#include <vector>

namespace opensandbox::agent {

/// The user's main process, owned by the agent as init: in a group of its own, standard input
/// /dev/null, its output in the agent's log of it.
class Entrypoint {
  public:
    /// Fails with an error that names the program and the reason. With `options.inherit_output` the
    /// process writes where the agent itself does. The log must outlive it.
    static Result<std::shared_ptr<Entrypoint>> start(asio::any_io_executor executor, Reaper& reaper,
                                                     const AgentOptions& options,
                                                     const Environment& environment,
                                                     OutputLog& log);
    explicit Entrypoint(OutputLog& log) : log_(&log) {}

    [[nodiscard]] Child& child() { return *child_; }
    /// The process ended: what it wrote last is read.
    void finish_output();

  private:
    void read_output();

    OutputLog* log_;
    std::shared_ptr<Child> child_;
    std::vector<OutputPipe> pipes_;  ///< none when the output is inherited
};

}  // namespace opensandbox::agent
