#pragma once

#include "cli/invocation.hpp"
#include "opensandbox/code.hpp"

namespace opensandbox::cli {

/// How a run of code ended for us.
struct CodeRun {
    CodeRun() = default;
    bool raised = false;       ///< the code ended with an error, which was printed
    bool interrupted = false;  ///< by a signal to this process
    bool reader_gone = false;
};

/// Runs code and prints what it writes, its results and what it raises as they come. The first
/// signal to this process interrupts the code, a second one ends the program.
Awaitable<sdk::Result<CodeRun>> run_remote_code(Invocation& invocation, sdk::Code code,
                                                sdk::CodeRequest request);

}  // namespace opensandbox::cli
