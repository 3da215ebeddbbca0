#include "cli/remote_run.hpp"

#include "base/scope_exit.hpp"
#include "sdk/stdio/output_queue.hpp"

#include <csignal>
#include <unistd.h>

namespace opensandbox::cli {

namespace {

/// Lets the sandbox end the command; its stream then ends by itself.
Awaitable<void> interrupt_remote(sdk::Commands commands, std::string id) {
    auto ignored = co_await commands.interrupt(std::move(id));
    static_cast<void>(ignored);
}

using Interrupt = std::function<Awaitable<void>(std::string id)>;

/// What one run shares between its stream and the signal handler.
struct RunControl {
    void stop(sdk::OutputQueue& output) {
        if (stopping) return;
        stopping = true;
        output.give_up();
        if (interrupt && !id.empty()) {
            net::spawn(executor, interrupt(id), "interrupt");
        } else {
            stream.abort();
        }
    }

    sdk::EventStream& stream;
    asio::any_io_executor executor;
    const Interrupt& interrupt;
    bool stopping = false;
    std::string id;
};

}  // namespace

Awaitable<sdk::Result<RemoteRun>> run_remote(Invocation& invocation, sdk::Commands commands,
                                             sdk::CommandRequest request, bool stop_remote) {
    auto stream = co_await commands.stream(std::move(request));
    if (!stream) co_return stream.error();
    Interrupt interrupt;
    if (stop_remote) {
        interrupt = [commands](std::string id) {
            return interrupt_remote(commands, std::move(id));
        };
    }
    co_return co_await pass_on(invocation, std::move(*stream), std::move(interrupt));
}

Awaitable<sdk::Result<RemoteRun>> pass_on(Invocation& invocation, sdk::EventStream stream,
                                          Interrupt interrupt) {
    RemoteRun run;
    sdk::OutputQueue output(invocation.executor());
    RunControl control(stream, invocation.executor(), interrupt);
    Interrupts& interrupts = invocation.interrupts();
    const auto interrupted = [&] {
        run.interrupted = true;
        control.stop(output);
    };
    interrupts.handle(interrupted);
    // One that came while the command was being asked for was left for here.
    if (interrupts.received() != 0) interrupted();
    ScopeExit released([&] { interrupts.handle({}); });

    bool finished = false;
    for (;;) {
        auto event = co_await stream.next();
        if (!event) {
            if (control.stopping) break;
            co_await output.flush();
            co_return event.error();
        }
        if (!event->has_value()) break;
        const sdk::Event& what = **event;
        if (what.type == sdk::EventType::init) {
            run.execution.id = control.id = what.text;
        } else if (what.type == sdk::EventType::standard_output) {
            output.append(STDOUT_FILENO, what.text);
        } else if (what.type == sdk::EventType::standard_error) {
            output.append(STDERR_FILENO, what.text);
        } else {
            finished = sdk::apply_terminal_event(what, run.execution) || finished;
        }
        co_await output.make_room();
        if (output.reader_gone() && !control.stopping) {
            run.reader_gone = true;
            control.stop(output);
        }
    }
    co_await output.flush();
    if (!finished && !control.stopping) {
        co_return sdk::Error(sdk::ErrorCode::bad_gateway,
                             "the event stream ended without saying how the command ended");
    }
    co_return run;
}

int finish_remote(Invocation& invocation, const RemoteRun& run) {
    if (run.interrupted) return 128 + invocation.interrupts().received();
    if (run.reader_gone) return 128 + SIGPIPE;
    if (auto why = start_failure_of(run.execution); !why.empty()) {
        invocation.terminal().print_error(why);
    }
    return exit_code_of(run.execution);
}

}  // namespace opensandbox::cli
