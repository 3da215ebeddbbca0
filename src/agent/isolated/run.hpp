#pragma once

#include "agent/isolated/isolation.hpp"
#include "agent/isolated/request.hpp"
#include "agent/process/process_context.hpp"
#include "agent/process/spawn.hpp"
#include "http/exchange.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// Waits for the session's turn, runs the code and answers with its events; a reader that leaves
/// cancels it. The session's shell state goes on to the next run.
Awaitable<void> run_foreground(ProcessContext& context, Isolation& isolation,
                               std::shared_ptr<IsolatedSession> session, RunRequest request,
                               http::Exchange& exchange);

/// Starts the code beside whatever else runs in the session.
Awaitable<Result<std::shared_ptr<BackgroundRun>>> start_background_run(
    ProcessContext& context, Isolation& isolation, std::shared_ptr<IsolatedSession> session,
    RunRequest request);

/// Bytes of output that are kept of a background run, and given at once.
inline constexpr std::uint64_t kMaxRunOutput = std::uint64_t{16} << 20;

/// The shells to try for a run: bash, else sh. Each takes up the state that the last foreground run
/// of the session left (variables, functions, working directory, umask), exports `envs` and
/// evaluates the code. A foreground run leaves its state behind when its shell exits, however it
/// does, unless the code set an EXIT trap of its own or replaced the shell. Pure.
std::vector<Program> session_shells(const RunRequest& request,
                                    std::optional<std::string_view> path);

}  // namespace opensandbox::agent
