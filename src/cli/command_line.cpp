#include "cli/command_line.hpp"

#include "base/scope_exit.hpp"
#include "cli/help.hpp"
#include "cli/invocation.hpp"
#include "net/task.hpp"
#include "version.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace opensandbox::cli {

namespace {

std::string program_name(const char* path) {
    std::string_view text(path ? path : "");
    text = text.substr(text.find_last_of('/') + 1);
    return text.empty() ? "opensandbox" : std::string(text);
}

int print_help(const CommandTable& table, const ParsedLine& line, const std::string& program,
               Terminal& terminal) {
    std::string text;
    if (!line.problem && !line.command && line.arguments.get("--output") == "json") {
        terminal.print(to_json_text(describe(table)));
        return kSuccess;
    }
    if (line.command) {
        text = command_help_text(*line.command, program);
    } else if (const Group* group = table.find_group(line.help_group)) {
        text = group_help_text(table, *group, program);
    } else {
        text = help_text(table, program);
    }
    if (line.problem) {  // a command is missing: help, but not a success
        terminal.print_note(text);
        terminal.print_error(line.problem->describe());
        return kWrongUsage;
    }
    terminal.print(text);
    return kSuccess;
}

/// Scripts that asked for JSON get failures as JSON, on standard error, on one line.
void report(const Failure& failure, Format format, bool verbose, Terminal& terminal) {
    std::string message = failure.describe();
    if (format == Format::json) {
        json::object document;
        const std::string_view kind =
            failure.is_usage() ? "usage" : sdk::to_string(failure.error().code());
        document["status"] = "error";
        document["message"] = message;
        document["kind"] = kind;
        const std::string& code = failure.error().wire_code();
        document["code"] = code.empty() ? kind : std::string_view(code);
        if (failure.error().status() != 0) document["http_status"] = failure.error().status();
        if (!failure.error().request_id().empty()) {
            document["request_id"] = failure.error().request_id();
        }
        terminal.print_note(json::serialize(document));
        return;
    }
    if (verbose && !failure.error().request_id().empty()) {
        message += " (request " + failure.error().request_id() + ")";
    }
    terminal.print_error(message);
}

/// What a line asks for that was not understood to its end: how to report that.
Format wanted_format(const ParsedLine& line, const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
        const std::string& word = words[i];
        if (word == "-ojson" || word == "-o=json" || word == "--output=json") return Format::json;
        const bool option = word == "-o" || word == "--output";
        if (option && i + 1 < words.size() && words[i + 1] == "json") return Format::json;
    }
    return line.format;
}

/// How long a command that was interrupted has for taking back what it began.
constexpr std::chrono::seconds kUnwinding{2};

/// Runs a command's coroutine on an event loop of its own.
int run_command(ParsedLine& line, sdk::ConfigFile file, Terminal& terminal) {
    asio::io_context context(1);
    int exit_code = kFailed;
    int interrupted = 0;
    bool ended = false;
    std::shared_ptr<asio::cancellation_signal> command;
    asio::steady_timer patience(context);
    Interrupts interrupts(context.get_executor(), [&](int code) {
        interrupted = code;
        ended = true;
        patience.expires_after(kUnwinding);
        patience.async_wait([&](boost::system::error_code) { context.stop(); });
        // Not stopped at once: a thread may be writing a file that has to go.
        if (command) command->emit(asio::cancellation_type::terminal);
    });
    Invocation invocation(context.get_executor(), line.arguments, line.format, terminal, interrupts,
                          std::move(file));
    const bool verbose = line.arguments.has("--verbose");
    auto body = [&]() -> Awaitable<void> {
        ScopeExit leave([&] { context.stop(); });
        Outcome outcome = co_await line.command->run(invocation);
        const Failure* failure = outcome.failure();
        if (failure && interrupted == 0) report(*failure, line.format, verbose, terminal);
        exit_code = outcome.exit_code();
        ended = true;
    };
    command = net::spawn_cancellable(context.get_executor(), body(), "command line");
    context.run();
    terminal.clear_progress();
    if (!ended) terminal.print_error("internal failure: the command did not finish");
    return interrupted != 0 ? interrupted : exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    const CommandTable table = make_command_table();
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    ParsedLine line = parse_line(table, words);
    const bool no_color = line.arguments.has("--no-color");
    Terminal plain(!no_color);
    const std::string program = program_name(argc > 0 ? argv[0] : nullptr);

    if (line.wants_help && (!line.problem || !line.command)) {
        return print_help(table, line, program, plain);
    }
    if (line.wants_version) {
        plain.print("opensandbox, version " + std::string(kVersion) + "\n");
        return kSuccess;
    }
    static_cast<void>(connection_overrides(line.arguments));  // all commands take these options
    if (!line.problem) line.problem = line.arguments.problem();
    if (line.problem) {
        const Format format = wanted_format(line, words);
        report(*line.problem, format, false, plain);
        std::string about = line.command ? line.command->full_name() : line.help_group;
        if (!about.empty()) about += ' ';
        if (format != Format::json) {
            plain.print_note("Try '" + program + " " + about + "--help'.");
        }
        return line.problem->exit_code();
    }

    auto path = line.arguments.get("--config");
    auto file =
        sdk::load_config_file(path ? std::filesystem::path(*path) : sdk::default_config_path());
    if (!file && (path || file.error().code() != sdk::ErrorCode::not_found)) {
        // `config` must be able to work on a file that is not there yet.
        const bool may_be_missing = line.command->group == "config";
        if (!may_be_missing || file.error().code() != sdk::ErrorCode::not_found) {
            report(Failure(file.error()), line.format, false, plain);
            return kFailed;
        }
    }
    sdk::ConfigFile settings = file ? std::move(*file) : sdk::ConfigFile();
    Terminal terminal(!no_color && settings.color.value_or(true));
    return run_command(line, std::move(settings), terminal);
}

}  // namespace opensandbox::cli
