#pragma once

#include "agent/process/environment.hpp"
#include "agent/process/process_context.hpp"
#include "agent/stream/output_log.hpp"
#include "model/hook_plan.hpp"
#include "net/stream.hpp"

#include <memory>
#include <string>

namespace opensandbox::agent {

/// Runs the commands of a plan as the user of the entrypoint. Their output goes where that of the
/// entrypoint goes.
class Hooks {
  public:
    /// Borrows all. With `inherit_output` they write where the agent itself does.
    Hooks(const ProcessContext& context, bool inherit_output, OutputLog& log)
        : executor_(context.executor),
          context_(&context),
          inherit_output_(inherit_output),
          log_(&log) {}

    Status configure(std::string_view text);
    [[nodiscard]] bool has_pre_start() const { return plan_.pre_start.has_value(); }
    /// Runs it to its end. Fails when it cannot start, fails or takes too long; the error names it
    /// and holds the end of its output.
    Awaitable<Status> pre_start();
    /// From now on each runs when it is due, unless its last run still runs.
    void start_periodic();

  private:
    struct Run;
    Awaitable<Status> run(model::PlannedHook hook);
    Awaitable<void> repeat(model::ScheduledHook periodic);
    Result<std::shared_ptr<Run>> start(const model::PlannedHook& hook);

    asio::any_io_executor executor_;
    const ProcessContext* context_;
    bool inherit_output_;
    OutputLog* log_;
    model::HookPlan plan_;
};

}  // namespace opensandbox::agent
