#include "base/scope_exit.hpp"
#include "cli/code_input.hpp"
#include "cli/invocation.hpp"
#include "cli/remote_run.hpp"
#include "net/task.hpp"
#include "sdk/stdio/standard_streams.hpp"

#include <array>
#include <csignal>
#include <unistd.h>

namespace opensandbox::cli {

namespace {

constexpr std::size_t kMaxCode = std::size_t{16} << 20;
const Option kLanguage{"--language", 'l', kLanguages, "Language of the code."};

std::optional<std::string> read_language(Arguments& arguments) {
    auto given = arguments.get("--language");
    if (!given) return std::nullopt;
    return arguments.choice("--language", *given,
                            {"python", "javascript", "typescript", "bash", "java", "go"});
}

Awaitable<sdk::Result<std::string>> read_all(std::unique_ptr<sdk::ByteReader> source) {
    std::string text;
    std::array<char, 16 * 1024> piece{};
    for (;;) {
        auto count = co_await source->read_some(piece);
        if (!count) co_return count.error();
        if (*count == 0) co_return text;
        text.append(piece.data(), *count);
        if (text.size() > kMaxCode) {
            co_return sdk::Error(sdk::ErrorCode::too_large, "the code has more than 16 MiB");
        }
    }
}

Awaitable<sdk::Result<std::string>> read_code(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    if (auto text = arguments.get("--code")) co_return *text;
    const auto files = arguments.rest("FILE");
    auto source = files.empty() || files.front() == "-"
                      ? sdk::open_standard_input(invocation.executor())
                      : sdk::read_file(files.front());
    if (!source) co_return source.error();
    co_return co_await read_all(std::move(*source));
}

Awaitable<Outcome> run_code(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::CodeRequest request;
    const auto files = arguments.rest("FILE");
    request.context_id = arguments.get("--context").value_or("");
    request.language = read_language(arguments).value_or(
        std::string(files.empty() ? "" : language_of(files.front())));
    if (arguments.has("--code") && !files.empty()) arguments.refuse("--code: takes no FILE");
    if (request.language.empty() && request.context_id.empty()) {
        arguments.refuse("--language is missing: one of " + std::string(kLanguages));
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto code = co_await read_code(invocation);
    if (!code) co_return code.error();
    request.code = std::move(*code);
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto done = co_await run_remote_code(invocation, sandbox->code(), std::move(request));
    if (!done) co_return done.error();
    if (done->interrupted) co_return 128 + invocation.interrupts().received();
    if (done->reader_gone) co_return 128 + SIGPIPE;
    co_return done->raised ? kFailed : kSuccess;
}

/// Lines of standard input; waiting for one can be ended by Ctrl-C.
class LineInput {
  public:
    LineInput(asio::any_io_executor executor, std::unique_ptr<sdk::ByteReader> source)
        : state_(std::make_shared<State>(executor)) {
        state_->source = std::move(source);
        pump_ = net::spawn_cancellable(executor, pump(state_), "lines");
    }
    ~LineInput() {
        state_->ended = true;
        state_->wanted.notify();
        pump_->emit(asio::cancellation_type::terminal);
    }
    LineInput(const LineInput&) = delete;
    LineInput& operator=(const LineInput&) = delete;

    struct Line {
        std::string text;  ///< with its line end
        bool interrupted = false;
        bool end = false;
    };
    Awaitable<Line> next() {
        auto state = state_;
        Line line;
        for (;;) {
            line.interrupted = std::exchange(state->interrupted, false);
            const auto end = state->pending.find('\n');
            if (line.interrupted) {
                state->pending.clear();
            } else if (end != std::string::npos) {
                line.text = state->pending.substr(0, end + 1);
                state->pending.erase(0, end + 1);
            } else if (state->ended) {
                line.text = std::exchange(state->pending, {});
                line.end = line.text.empty();
            } else {
                state->wanted.notify();
                co_await state->came.wait();
                continue;
            }
            co_return line;
        }
    }
    void interrupt() {
        state_->interrupted = true;
        state_->came.notify();
    }

  private:
    struct State {
        explicit State(asio::any_io_executor ex) : came(ex), wanted(ex) {}
        std::unique_ptr<sdk::ByteReader> source;
        std::string pending;
        net::Event came;
        net::Event wanted;
        bool ended = false;
        bool interrupted = false;
    };
    static Awaitable<void> pump(std::shared_ptr<State> state) {
        std::string piece(4096, '\0');
        while (!state->ended) {
            co_await state->wanted.wait();
            if (state->ended) co_return;
            auto count = co_await state->source->read_some(piece);
            if (count && *count > 0) {
                state->pending.append(piece, 0, *count);
            } else {
                state->ended = true;
            }
            state->came.notify();
        }
    }
    std::shared_ptr<State> state_;
    std::shared_ptr<asio::cancellation_signal> pump_;
};

/// Reads, runs and prints until the end of the input.
Awaitable<Outcome> converse(Invocation& invocation, sdk::Code code, sdk::CodeContext context) {
    auto source = sdk::open_standard_input(invocation.executor());
    if (!source) co_return source.error();
    LineInput input(invocation.executor(), std::move(*source));
    Interrupts& interrupts = invocation.interrupts();
    const bool prompts = ::isatty(STDIN_FILENO) == 1;
    int exit_code = kSuccess;
    std::string typed;
    for (;;) {
        if (prompts) invocation.terminal().print(typed.empty() ? context.language + "> " : "... ");
        interrupts.handle([&] { input.interrupt(); });
        auto line = co_await input.next();
        interrupts.handle([] {});
        if (line.interrupted) {
            const int signal = interrupts.received();
            if (signal != SIGINT || !prompts) co_return 128 + signal;
            interrupts.forget();
            typed.clear();
            invocation.terminal().print("\n");
            continue;
        }
        typed += line.text;
        if (!line.end && needs_more(context.language, typed)) continue;
        if (typed.find_first_not_of(" \t\r\n") != std::string::npos) {
            sdk::CodeRequest request(std::exchange(typed, {}), context.language);
            request.context_id = context.id;
            auto done = co_await run_remote_code(invocation, code, std::move(request));
            if (!done) co_return done.error();
            if (done->reader_gone) co_return 128 + SIGPIPE;
            exit_code = done->raised ? kFailed : kSuccess;
            if (done->interrupted) {
                if (interrupts.received() != SIGINT) co_return 128 + interrupts.received();
                interrupts.forget();
            }
        }
        typed.clear();
        if (!line.end) continue;
        if (prompts) invocation.terminal().print("\n");
        co_return prompts ? kSuccess : exit_code;
    }
}

Awaitable<Outcome> repl(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto language = read_language(arguments);
    const auto given = arguments.get("--context");
    if (given && language) arguments.refuse("--context: brings its own language");
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    sdk::Code code = sandbox->code();
    // A context that was asked for is seen through, so that it can be removed again.
    Interrupts& interrupts = invocation.interrupts();
    interrupts.handle([] {});
    std::optional<sdk::Result<sdk::CodeContext>> context;
    if (given) {
        context.emplace(co_await code.context(*given));
    } else {
        context.emplace(co_await code.create_context(language.value_or("python"),
                                                     arguments.get("--workdir").value_or("")));
    }
    if (!*context) co_return context->error();
    std::optional<Outcome> outcome;
    if (interrupts.received() != 0) {
        outcome.emplace(128 + interrupts.received());
    } else {
        outcome.emplace(co_await converse(invocation, code, **context));
    }
    if (!given) {
        interrupts.handle([] {});
        auto removed = co_await code.remove_context((*context)->id);
        const bool gone = removed || removed.error().code() == sdk::ErrorCode::not_found;
        if (!gone && !outcome->failure()) co_return removed.error();
    }
    co_return *outcome;
}

}  // namespace

void add_code_commands(CommandTable& table) {
    Command command;
    command.group = "code";
    command.name = "run";
    command.summary = "Run code in an interpreter that remembers.";
    command.details =
        "The code runs in the context that is named, or in the default one of its language: what\n"
        "one run defines the next one has. Output comes as it is made, then results; what the "
        "code\n"
        "raises goes to standard error, and the exit code is 1. Ctrl-C interrupts the code, once\n"
        "more leaves it.";
    command.positionals = {
        kSandboxId,
        {"FILE", "File with the code; - or nothing: standard input.", Positional::Count::optional}};
    command.options = {kLanguage,
                       {"--code", 'c', "TEXT", "The code itself instead of a file."},
                       {"--context", 0, "CONTEXT_ID", "Context to run it in."}};
    command.examples = {
        {"code run SANDBOX_ID analysis.py", "a file, whose name tells the language"},
        {"code run SANDBOX_ID -l python -c 'print(6*7)'", "a line"}};
    command.run = run_code;
    table.commands.push_back(command);

    command = Command();
    command.group = "code";
    command.name = "repl";
    command.summary = "Talk to an interpreter in a sandbox.";
    command.details =
        "Makes a context and removes it at the end. What is unfinished goes on in the next line; "
        "in\n"
        "Python an empty line ends a block. Ctrl-C interrupts the code that runs, or drops what "
        "was\n"
        "typed; Ctrl-D ends it.";
    command.positionals = {kSandboxId};
    command.options = {{"--language", 'l', kLanguages, "Language (default python)."},
                       {"--context", 0, "CONTEXT_ID", "A context that is there, and stays."},
                       {"--workdir", 'w', "PATH", "Directory to start in; made when missing."}};
    command.examples = {{"code repl SANDBOX_ID", "Python"},
                        {"code repl SANDBOX_ID -l javascript", "another language"}};
    command.run = repl;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
