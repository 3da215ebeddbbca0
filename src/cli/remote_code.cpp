#include "base/scope_exit.hpp"
#include "cli/remote_run.hpp"
#include "net/task.hpp"
#include "sdk/stdio/output_queue.hpp"

#include <unistd.h>

namespace opensandbox::cli {

namespace {

Awaitable<void> interrupt_remote(sdk::Code code, std::string context) {
    auto ignored = co_await code.interrupt(std::move(context));  // the stream tells how it went
    static_cast<void>(ignored);
}

std::string with_line_end(std::string text) {
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    return text;
}

/// The text of a result; of what has none, what it is.
std::string shown(const sdk::Event& event) {
    std::string others;
    for (const auto& [type, content] : event.results) {
        if (type == "text" || type == "text/plain") return with_line_end(content);
        others +=
            (others.empty() ? "" : ", ") + type + ", " + std::to_string(content.size()) + " bytes";
    }
    return others.empty() ? others : "[" + others + "]\n";
}

std::string shown(const sdk::ExecutionError& error) {
    std::string text;
    for (const auto& line : error.traceback)
        text += with_line_end(line);
    if (!text.empty()) return text;
    return error.value.empty() ? error.name + "\n" : error.name + ": " + error.value + "\n";
}

struct CodeControl {
    void stop() {
        interrupted = true;
        if (stream == nullptr) return;  // it is interrupted as soon as it has begun
        if (context.empty()) {
            stream->abort();
        } else {
            net::spawn(executor, interrupt_remote(code, context), "interrupt");
        }
    }
    asio::any_io_executor executor;
    sdk::Code code;
    sdk::EventStream* stream;
    std::string context;
    bool interrupted = false;
};

/// Whether it was the last event of a run.
bool print_event(const sdk::Event& event, sdk::OutputQueue& output, CodeRun& run) {
    switch (event.type) {
        case sdk::EventType::standard_output: output.append(STDOUT_FILENO, event.text); break;
        case sdk::EventType::standard_error: output.append(STDERR_FILENO, event.text); break;
        case sdk::EventType::result: output.append(STDOUT_FILENO, shown(event)); break;
        case sdk::EventType::error:
            run.raised = true;
            output.append(STDERR_FILENO, shown(event.error));
            return true;
        case sdk::EventType::execution_complete: return true;
        default: break;
    }
    return false;
}

}  // namespace

Awaitable<sdk::Result<CodeRun>> run_remote_code(Invocation& invocation, sdk::Code code,
                                                sdk::CodeRequest request) {
    CodeRun run;
    sdk::OutputQueue output(invocation.executor());
    CodeControl control{invocation.executor(), code, nullptr, request.context_id};
    Interrupts& interrupts = invocation.interrupts();
    interrupts.handle([&] { control.stop(); });
    ScopeExit released([&] { interrupts.handle([] {}); });
    auto stream = co_await code.stream(std::move(request));
    if (!stream) co_return stream.error();
    control.stream = &*stream;
    if (control.interrupted) control.stop();
    bool finished = false;
    for (;;) {
        auto event = co_await stream->next();
        if (!event) {
            if (control.interrupted) break;
            co_await output.flush();
            co_return event.error();
        }
        if (!event->has_value()) break;
        if ((*event)->type == sdk::EventType::init) control.context = (*event)->text;
        finished = print_event(**event, output, run) || finished;
        co_await output.make_room();
        if (output.reader_gone()) {
            run.reader_gone = true;
            break;
        }
    }
    co_await output.flush();
    run.interrupted = control.interrupted;
    if (!finished && !run.interrupted && !run.reader_gone) {
        co_return sdk::Error(sdk::ErrorCode::bad_gateway,
                             "the event stream ended without saying how the run ended");
    }
    co_return run;
}

}  // namespace opensandbox::cli
