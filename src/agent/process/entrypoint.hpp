#pragma once

#include "agent/agent.hpp"
#include "agent/process/environment.hpp"
#include "agent/process/reaper.hpp"
#include "agent/stream/output_pipe.hpp"
#include "agent/stream/output_ring.hpp"

#include <memory>
#include <string>
#include <vector>

namespace opensandbox::agent {

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
