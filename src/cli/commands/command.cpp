#include "cli/invocation.hpp"
#include "cli/remote_run.hpp"
#include "cli/shell_quote.hpp"
#include "net/task.hpp"
#include "sdk/document/describe.hpp"

namespace opensandbox::cli {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kExecution = "EXECUTION_ID";
constexpr std::chrono::milliseconds kFollowPause = 300ms;
const Positional kExecutionId{kExecution, "The execution's id, as 'command run -d' printed it."};

sdk::CommandRequest read_request(Arguments& arguments) {
    sdk::CommandRequest request;
    auto words = arguments.rest("COMMAND");
    if (arguments.has("--argv") && arguments.has("--shell")) {
        arguments.refuse("--argv and --shell exclude each other");
    }
    if (arguments.has("--argv")) {
        request.argv = std::move(words);
    } else if (arguments.has("--shell")) {
        for (const auto& word : words) {
            request.command += (request.command.empty() ? "" : " ") + word;
        }
    } else {
        request.command = shell_join(words);
    }
    request.working_directory = arguments.get("--workdir").value_or("");
    request.environment = arguments.pairs("--env");
    if (auto limit = arguments.duration("--timeout")) request.timeout = *limit;
    return request;
}

Awaitable<Outcome> run_in_sandbox(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::CommandRequest request = read_request(arguments);
    const bool background = arguments.has("--background");
    const bool given = arguments.has("--output");
    if (given && background == (invocation.format() == Format::raw)) {
        arguments.refuse("--output", to_string(invocation.format()),
                         background ? "table, json or yaml with --background"
                                    : "raw; the others need --background");
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    sdk::Commands commands = sandbox->commands();
    if (background) {
        auto id = co_await commands.start(std::move(request));
        if (!id) co_return id.error();
        json::object document;
        document["execution_id"] = *id;
        document["sandbox_id"] = sandbox->id();
        document["mode"] = "background";
        co_return invocation.print_object(document);
    }
    auto done = co_await run_remote(invocation, commands, std::move(request), /*stop_remote=*/true);
    if (!done) co_return done.error();
    co_return finish_remote(invocation, *done);
}

Awaitable<Outcome> status(Invocation& invocation) {
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto status = co_await sandbox->commands().status(invocation.arguments().one(kExecution));
    if (!status) co_return status.error();
    co_return invocation.print_object(describe(*status));
}

Awaitable<Outcome> list_commands(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::CommandFilter filter;
    if (arguments.has("--running") && arguments.has("--ended")) {
        arguments.refuse("--running and --ended exclude each other");
    }
    if (arguments.has("--running")) filter.running = true;
    if (arguments.has("--ended")) filter.running = false;
    if (auto limit = arguments.integer("--limit", 1, 100)) {
        filter.limit = static_cast<unsigned>(*limit);
    }
    filter.cursor = arguments.get("--cursor").value_or("");
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto page = co_await sandbox->commands().list(std::move(filter));
    if (!page) co_return page.error();
    const json::object document = describe(*page);
    co_return invocation.print_list(document, document.at("items").as_array(),
                                    {{"ID", "id"},
                                     {"RUNNING", "running"},
                                     {"BACKGROUND", "background"},
                                     {"EXIT_CODE", "exit_code"},
                                     {"STARTED_AT", "started_at"},
                                     {"FINISHED_AT", "finished_at"}});
}

Awaitable<Outcome> interrupt(Invocation& invocation) {
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const std::string id = invocation.arguments().one(kExecution);
    auto stopped = co_await sandbox->commands().interrupt(id);
    if (!stopped) co_return stopped.error();
    co_return invocation.print_done("Interrupted: " + id);
}

/// Prints what comes until the command has ended and all of it was printed.
Awaitable<Outcome> follow(Invocation& invocation, sdk::Commands commands, std::string id,
                          std::int64_t cursor) {
    for (;;) {
        // The status first: what a finished command wrote is all there afterwards.
        auto status = co_await commands.status(id);
        if (!status) co_return status.error();
        auto logs = co_await commands.logs(id, cursor);
        if (!logs) co_return logs.error();
        if (!invocation.terminal().print(logs->content)) co_return kSuccess;
        if (!logs->cursor && status->running) {
            co_return sdk::Error(sdk::ErrorCode::unsupported,
                                 "this sandbox's agent cannot continue a log");
        }
        const bool moved = logs->cursor.value_or(cursor) != cursor;
        cursor = logs->cursor.value_or(cursor);
        if (!status->running && (logs->content.empty() || !moved)) co_return kSuccess;
        if (status->running) co_await net::sleep_for(kFollowPause);
    }
}

Awaitable<Outcome> command_logs(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto cursor = arguments.integer("--cursor", 0, INT64_MAX).value_or(0);
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    sdk::Commands commands = sandbox->commands();
    if (arguments.has("--follow")) {
        co_return co_await follow(invocation, commands, arguments.one(kExecution), cursor);
    }
    auto logs = co_await commands.logs(arguments.one(kExecution), cursor);
    if (!logs) co_return logs.error();
    if (invocation.format() == Format::table || invocation.format() == Format::raw) {
        co_return invocation.print_raw(logs->content);
    }
    json::object document;
    document["content"] = logs->content;
    document["cursor"] = logs->cursor ? json::value(*logs->cursor) : json::value();
    co_return invocation.print_object(document);
}

}  // namespace

void add_command_commands(CommandTable& table) {
    const std::vector<Format> formats{Format::table, Format::json, Format::yaml};
    Command command;
    command.group = "command";
    command.name = "run";
    command.summary = "Run a command in a sandbox.";
    command.details =
        "In the foreground output comes as it is made and the exit code is the command's own.\n"
        "The words are joined into one line for the sandbox's shell, each quoted, so that they\n"
        "arrive as they are; --shell joins them unquoted, --argv uses no shell at all.";
    command.positionals = {kSandboxId,
                           {"COMMAND", "Program and arguments.", Positional::Count::payload}};
    command.options = {
        {"--background", 'd', "", "Start it, print its id and return."},
        {"--workdir", 'w', "PATH", "Directory to start in."},
        {"--timeout", 't', "DURATION", "Kill it after this time (default: never)."},
        {"--env", 'e', "KEY=VALUE", "Environment variable.", true},
        {"--argv", 0, "", "Pass the words as they stand, without a shell."},
        {"--shell", 0, "", "Let the shell see variables, pipes and quotes in the words."},
    };
    command.formats = {Format::raw, Format::table, Format::json, Format::yaml};
    command.examples = {
        {"command run SANDBOX_ID -- ls -l /", "run and wait"},
        {"command run SANDBOX_ID --shell -- 'ps ax | wc -l'", "use the sandbox's shell"},
        {"command run SANDBOX_ID -d -- sleep 60", "start in the background"}};
    command.run = run_in_sandbox;
    table.commands.push_back(command);

    command = Command();
    command.group = "command";
    command.name = "status";
    command.summary = "Show whether a command runs and how it ended.";
    command.positionals = {kSandboxId, kExecutionId};
    command.formats = formats;
    command.examples = {{"command status SANDBOX_ID EXECUTION_ID -o json", "for scripts"}};
    command.run = status;
    table.commands.push_back(command);

    command.name = "list";
    command.summary = "List the commands of a sandbox, the latest first.";
    command.positionals = {kSandboxId};
    command.options = {
        {"--running", 0, "", "Only those that run."},
        {"--ended", 0, "", "Only those that ended; the last 10000 of a day are kept."},
        {"--limit", 0, "NUMBER", "How many at most, 1 to 100 (50)."},
        {"--cursor", 0, "CURSOR", "Go on behind the page that gave it (-o json)."}};
    command.examples = {{"command list SANDBOX_ID --running", "what is going on"}};
    command.run = list_commands;
    table.commands.push_back(command);

    command.name = "logs";
    command.positionals = {kSandboxId, kExecutionId};
    command.summary = "Print what a background command wrote.";
    command.options = {{"--cursor", 0, "NUMBER", "Continue where an earlier call ended."},
                       {"--follow", 'f', "", "Go on until the command ends."}};
    command.formats = {Format::table, Format::json, Format::yaml, Format::raw};
    command.examples = {{"command logs SANDBOX_ID EXECUTION_ID -f", "follow it"}};
    command.run = command_logs;
    table.commands.push_back(command);

    command.name = "interrupt";
    command.summary = "End a running command.";
    command.options.clear();
    command.examples = {{"command interrupt SANDBOX_ID EXECUTION_ID", "SIGTERM, then SIGKILL"}};
    command.formats = formats;
    command.run = interrupt;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
