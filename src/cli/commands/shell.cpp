#include "base/identifier.hpp"
#include "cli/invocation.hpp"
#include "cli/remote_run.hpp"
#include "cli/remote_shell.hpp"
#include "cli/shell_quote.hpp"
#include "sdk/stdio/standard_streams.hpp"

#include <unistd.h>

namespace opensandbox::cli {

namespace {

/// Standard input that is no terminal goes into a file that the command reads, so that it sees the
/// end of it.
Awaitable<Outcome> run_with_input(Invocation& invocation, sdk::Sandbox sandbox,
                                  std::vector<std::string> words) {
    auto input = sdk::open_standard_input(invocation.executor());
    if (!input) co_return input.error();
    const std::string path = "/tmp/.stdin-" + new_uuid();
    sdk::Permissions only_owner(0600);
    auto sent = co_await sandbox.files().upload(path, **input, std::move(only_owner));
    if (!sent) co_return sent.error();
    const std::string what =
        words.empty() ? "\"$(command -v bash || command -v sh)\"" : shell_join(words);
    sdk::CommandRequest request("exec <" + path + "; rm -f " + path + "; exec " + what);
    request.working_directory = invocation.arguments().get("--workdir").value_or("");
    auto done = co_await run_remote(invocation, sandbox.commands(), std::move(request),
                                    /*stop_remote=*/true);
    if (!done) co_return done.error();
    co_return finish_remote(invocation, *done);
}

Awaitable<Outcome> shell(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto words = arguments.rest("COMMAND");
    const auto view = arguments.get("--view");
    const auto attach = view ? view : arguments.get("--attach");
    const std::string option = view ? "--view" : "--attach";
    if (view && arguments.has("--attach")) {
        arguments.refuse("--view and --attach exclude each other");
    }
    if (attach && !words.empty()) arguments.refuse(option + ": takes no command");
    if (attach && arguments.has("--workdir")) arguments.refuse(option + ": takes no --workdir");
    const bool terminal = ::isatty(STDIN_FILENO) == 1;
    if (attach && !terminal) {
        arguments.refuse(option + ": needs a terminal on standard input");
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    if (!terminal) co_return co_await run_with_input(invocation, *sandbox, std::move(words));

    ShellRequest request;
    request.escapes = !arguments.has("--no-escape");
    request.replay = true;
    request.view = view.has_value();
    sdk::Terminals terminals = sandbox->terminals();
    if (attach) {
        request.session = *attach;
        auto info = co_await terminals.info(*attach);
        if (!info) co_return info.error();
    } else {
        sdk::TerminalOptions options;
        options.working_directory = arguments.get("--workdir").value_or("");
        if (!words.empty()) options.command = shell_join(words);
        auto made = co_await terminals.create(std::move(options));
        if (!made) co_return made.error();
        request.session = *made;
    }
    request.attach_command =
        "opensandbox sandbox shell " + sandbox->id() + " " + option + " " + request.session;
    co_return co_await run_remote_shell(invocation, terminals, std::move(request));
}

}  // namespace

void add_shell_command(CommandTable& table) {
    Command command;
    command.group = "sandbox";
    command.name = "shell";
    command.summary = "Work in a sandbox with a shell in this terminal.";
    command.details =
        "Every key goes to the sandbox, Ctrl-C too, and the terminal's size follows yours. '~.' "
        "at\n"
        "the beginning of a line detaches: the shell runs on, and --attach comes back to it. '~~'\n"
        "is one tilde. A connection that breaks is made again for half a minute. The exit code is\n"
        "the shell's own.\n"
        "When standard input is no terminal, all of it is read first and is the shell's script, "
        "or\n"
        "COMMAND's input.";
    command.positionals = {kSandboxId,
                           {"COMMAND", "Program and arguments instead of a shell.",
                            Positional::Count::optional_payload}};
    command.options = {
        {"--attach", 0, "SESSION",
         "Come back to a shell that was left, from another terminal too."},
        {"--view", 0, "SESSION",
         "Watch a shell that runs, beside who works in it; keys but '~.' do nothing."},
        {"--workdir", 'w', "PATH", "Directory to start in; made when it is missing."},
        {"--no-escape", 0, "", "Let '~' be a key like all others."},
    };
    command.examples = {{"sandbox shell SANDBOX_ID", "a shell"},
                        {"sandbox shell SANDBOX_ID -- top", "a program that draws on the terminal"},
                        {"sandbox shell SANDBOX_ID < setup.sh", "run a local script in it"}};
    command.run = shell;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
