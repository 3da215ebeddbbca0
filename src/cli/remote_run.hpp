#pragma once

#include "cli/invocation.hpp"
#include "opensandbox/code.hpp"
#include "opensandbox/commands.hpp"

namespace opensandbox::cli {

/// How a remote command ended for us.
struct RemoteRun {
    sdk::Execution execution;
    bool interrupted = false;  ///< by a signal to this process
    bool reader_gone = false;  ///< nobody reads our output any more
};

/// Runs a command with its output passed on as it comes. A signal to this process, or the loss of
/// our reader, stops it: `stop_remote` says whether the remote command is then interrupted and its
/// end awaited, or only left (when its sandbox is deleted anyway).
Awaitable<sdk::Result<RemoteRun>> run_remote(Invocation& invocation, sdk::Commands commands,
                                             sdk::CommandRequest request, bool stop_remote);

/// The same with events that are on their way already. `interrupt` ends the remote command by its
/// id; without one it is only left.
Awaitable<sdk::Result<RemoteRun>> pass_on(
    Invocation& invocation, sdk::EventStream stream,
    std::function<Awaitable<void>(std::string id)> interrupt = {});

/// The exit code of the whole program after it; says on standard error why a command did not start.
int finish_remote(Invocation& invocation, const RemoteRun& run);

/// How a run of code ended for us.
struct CodeRun {
    bool raised = false;       ///< the code ended with an error, which was printed
    bool interrupted = false;  ///< by a signal to this process
    bool reader_gone = false;
};

/// Runs code and prints what it writes, its results and what it raises as they come. The first
/// signal to this process interrupts the code, a second one ends the program.
Awaitable<sdk::Result<CodeRun>> run_remote_code(Invocation& invocation, sdk::Code code,
                                                sdk::CodeRequest request);

}  // namespace opensandbox::cli
