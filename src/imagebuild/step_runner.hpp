#pragma once

#include "imagebuild/cancellation.hpp"
#include "imagebuild/context.hpp"
#include "imagebuild/selection.hpp"
#include "imagebuild/stage_state.hpp"
#include "net/stream.hpp"
#include "opensandbox/sandbox.hpp"

#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <string>

namespace opensandbox::imagebuild {

/// Takes what a RUN writes; while it waits, no more is read.
using OutputSink = std::function<Awaitable<void>(std::string text)>;

/// Carries out single steps in a sandbox. Errors are the reason alone.
class StepRunner {
  public:
    StepRunner(Cancellation& cancellation, asio::thread_pool& files, OutputSink output)
        : cancellation_(cancellation), files_(files), output_(std::move(output)) {}

    /// A command that ends with another code than 0 is an error that says which.
    Awaitable<sdk::Status> run(sdk::Sandbox sandbox, RunStep step);
    Awaitable<sdk::Status> make_directory(sdk::Sandbox sandbox, DirectoryStep step);
    /// From the context, which outlives it.
    Awaitable<sdk::Status> copy(sdk::Sandbox sandbox, CopyStep step, Context& context,
                                Selection selection);
    /// From another sandbox.
    Awaitable<sdk::Status> copy(sdk::Sandbox sandbox, CopyStep step, sdk::Sandbox from);

  private:
    Awaitable<sdk::Result<sdk::CommandRequest>> command_of(sdk::Sandbox sandbox, RunStep step);
    Awaitable<sdk::Status> send(sdk::Sandbox sandbox, sdk::Permissions permissions,
                                std::string directory, Context& context, Selection selection,
                                std::string rename);
    Awaitable<sdk::Status> send_file(sdk::Sandbox sandbox, sdk::Permissions permissions,
                                     std::string directory, std::string path);

    Cancellation& cancellation_;
    asio::thread_pool& files_;
    OutputSink output_;
};

/// Splits the archives that ADD unpacks from a selection. Blocks.
Result<std::vector<std::string>> take_archives(const Context& context, Selection& selection);

}  // namespace opensandbox::imagebuild
