#pragma once

#include "agent/process/process_context.hpp"
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
    /// Fails with an error that names the program and the reason. With `inherit_output` the process
    /// writes where the agent itself does. The log must outlive it.
    static Result<std::shared_ptr<Entrypoint>> start(const ProcessContext& context,
                                                     const std::vector<std::string>& command,
                                                     bool inherit_output, OutputLog& log);
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
