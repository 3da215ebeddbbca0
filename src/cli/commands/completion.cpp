#include "cli/completion.hpp"

#include "cli/invocation.hpp"
#include "cli/sandbox_listing.hpp"
#include "net/task.hpp"

namespace opensandbox::cli {

namespace {

/// Whoever presses Tab waits no longer than this for the server.
constexpr std::chrono::milliseconds kPatience{1500};

Awaitable<Outcome> print_script(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const std::string shell = arguments.one("bash|zsh|fish");
    const std::string script =
        completion_script(shell, arguments.get("--program").value_or("opensandbox"));
    if (script.empty()) arguments.refuse("SHELL", shell, "bash, zsh or fish");
    if (arguments.problem()) co_return *arguments.problem();
    co_return invocation.print_raw(script);
}

/// Ids of the server that the typed line would talk to; none when it does not answer in time.
Awaitable<std::vector<std::string>> sandbox_ids(Invocation& invocation) {
    std::vector<std::string> ids;
    sdk::ConnectionOverrides overrides = connection_overrides(invocation.arguments());
    overrides.request_timeout = kPatience;
    auto config = sdk::ConnectionConfig::discover(overrides);
    if (!config) co_return ids;
    auto connection = sdk::Connection::open(invocation.executor(), std::move(*config));
    if (!connection) co_return ids;
    sdk::ListFilter filter;
    filter.page_size = 200;
    sdk::Sandboxes sandboxes(*connection);
    auto page = co_await sandboxes.list(std::move(filter));
    if (!page) co_return ids;
    for (const auto& info : page->items)
        ids.push_back(info.id);
    co_return ids;
}

/// The connection options of the line that is typed hold for the question, too.
void adopt_connection_options(Arguments& arguments, const std::vector<std::string>& words) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        for (std::string_view name :
             {"--server", "--domain", "--api-key", "--protocol", "--config"}) {
            if (words[i] == name && i + 2 < words.size()) arguments.add_option(name, words[i + 1]);
            const std::string joined = std::string(name) + "=";
            if (words[i].starts_with(joined)) {
                arguments.add_option(name, words[i].substr(joined.size()));
            }
        }
    }
}

Awaitable<Outcome> answer(Invocation& invocation) {
    const auto words = invocation.arguments().rest("WORD");
    static const CommandTable table = make_command_table();
    const Completion found = complete(table, words);
    std::string text;
    for (const auto& word : found.words)
        text += found.before + word + "\n";
    if (found.sandbox_ids) {
        adopt_connection_options(invocation.arguments(), words);
        for (const auto& id : co_await sandbox_ids(invocation)) {
            if (id.starts_with(found.prefix)) text += found.before + id + "\n";
        }
    }
    if (found.files) text += ":files\n";
    co_return invocation.print_raw(text);
}

}  // namespace

void add_completion_commands(CommandTable& table) {
    Command command;
    command.name = "completion";
    command.summary = "Print a script that lets a shell complete this program's lines.";
    command.details =
        "It completes commands, options, their values and the ids of sandboxes, for which the "
        "server\n"
        "is asked; when it does not answer within 1.5 s there are none.";
    command.positionals = {{"bash|zsh|fish", "The shell."}};
    command.options = {
        {"--program", 0, "NAME", "Name that this program is called by (default opensandbox)."}};
    command.examples = {{"completion bash", "as  source <(opensandbox completion bash)"},
                        {"completion fish", "as  opensandbox completion fish | source"}};
    command.run = print_script;
    table.commands.push_back(std::move(command));

    command = Command();
    command.name = "complete";
    command.summary = "Print what may stand at the end of a line, for the scripts of 'completion'.";
    command.hidden = true;
    command.examples = {{"complete -- sandbox li", "what goes on like this"}};
    command.positionals = {{"WORD", "Words typed so far.", Positional::Count::optional_payload}};
    command.run = answer;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
