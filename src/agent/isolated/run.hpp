#pragma once

#include "agent/isolated/isolation.hpp"
#include "agent/process/process_context.hpp"
#include "http/exchange.hpp"

namespace opensandbox::agent {

/// Waits for the session's turn, runs the code and answers with its events; a reader that leaves
/// cancels it. The session's shell state goes on to the next run.
Awaitable<void> run_foreground(const ProcessContext& context, Isolation& isolation,
                               std::shared_ptr<IsolatedSession> session, RunRequest request,
                               http::Exchange& exchange);

/// Starts the code beside whatever else runs in the session.
Awaitable<Result<std::shared_ptr<BackgroundRun>>> start_background_run(
    const ProcessContext& context, Isolation& isolation, std::shared_ptr<IsolatedSession> session,
    RunRequest request);

/// Bytes of output that are kept of a background run, and given at once.
inline constexpr std::uint64_t kMaxRunOutput = std::uint64_t{16} << 20;

}  // namespace opensandbox::agent
