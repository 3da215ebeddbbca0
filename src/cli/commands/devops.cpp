#include "cli/duration.hpp"
#include "cli/invocation.hpp"
#include "opensandbox/diagnostics.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::int64_t kMostLines = 10'000;
constexpr std::int64_t kMostEvents = 500;

Outcome print_page(Invocation& invocation, const sdk::Result<std::string>& page) {
    if (!page) return page.error();
    return invocation.print_raw(page->ends_with('\n') ? *page : *page + "\n");
}

void note_successor(Invocation& invocation, std::string_view name) {
    invocation.terminal().print_note("Note: 'diagnostics " + std::string(name) +
                                     "' is the lasting form of 'devops " + std::string(name) +
                                     "'.");
}

unsigned count_of(Arguments& arguments, std::string_view option, std::int64_t most,
                  unsigned otherwise) {
    return static_cast<unsigned>(arguments.integer(option, 1, most).value_or(otherwise));
}

Awaitable<Outcome> inspect(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Diagnostics diagnostics(*connection);
    auto page = co_await diagnostics.inspect(invocation.arguments().one("SANDBOX_ID"));
    co_return print_page(invocation, page);
}

Awaitable<Outcome> summary(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const unsigned tail = count_of(arguments, "--tail", kMostLines, 50);
    const unsigned limit = count_of(arguments, "--event-limit", kMostEvents, 20);
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Diagnostics diagnostics(*connection);
    auto page = co_await diagnostics.summary(arguments.one("SANDBOX_ID"), tail, limit);
    co_return print_page(invocation, page);
}

Awaitable<Outcome> devops_logs(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const unsigned tail = count_of(arguments, "--tail", kMostLines, 100);
    std::string since;
    // The server knows one unit only; more than a moment is never lost by rounding up.
    if (auto time = arguments.duration("--since")) {
        since = std::to_string(std::chrono::ceil<std::chrono::seconds>(*time).count()) + "s";
    }
    if (arguments.problem()) co_return *arguments.problem();
    note_successor(invocation, "logs");
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Diagnostics diagnostics(*connection);
    auto page = co_await diagnostics.log_text(arguments.one("SANDBOX_ID"), tail, std::move(since));
    co_return print_page(invocation, page);
}

Awaitable<Outcome> devops_events(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const unsigned limit = count_of(arguments, "--limit", kMostEvents, 50);
    if (arguments.problem()) co_return *arguments.problem();
    note_successor(invocation, "events");
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Diagnostics diagnostics(*connection);
    auto page = co_await diagnostics.event_text(arguments.one("SANDBOX_ID"), limit);
    co_return print_page(invocation, page);
}

}  // namespace

void add_devops_commands(CommandTable& table) {
    const Option tail{"--tail", 'n', "LINES", "Last lines of the log, 1 to 10000 (default 100)."};
    Command command =
        make_document_command("devops", "summary", "Print inspection, events and logs on one page.",
                              {kSandboxId}, summary);
    command.formats = {Format::raw};
    command.options = {{"--tail", 'n', "LINES", "Last lines of the log, 1 to 10000 (default 50)."},
                       {"--event-limit", 0, "NUMBER", "Lines of events, 1 to 500 (default 20)."}};
    command.examples = {{"devops summary SANDBOX_ID -n 200", "to attach to a report"}};
    table.commands.push_back(command);

    command.name = "inspect";
    command.summary = "Print state, resources, network, labels and environment.";
    command.options.clear();
    command.details = "Values of variables whose names look secret are hidden.";
    command.examples = {{"devops inspect SANDBOX_ID", "all that the runtime knows"}};
    command.run = inspect;
    table.commands.push_back(command);

    command.name = "logs";
    command.summary = "Print the log; 'diagnostics logs' is the lasting form.";
    command.details = {};
    command.options = {tail, {"--since", 's', "DURATION", "Only of this last time: 10m, 1h."}};
    command.examples = {{"devops logs SANDBOX_ID -n 20 -s 10m", "the last minutes"}};
    command.run = devops_logs;
    table.commands.push_back(command);

    command.name = "events";
    command.summary = "Print events; 'diagnostics events' is the lasting form.";
    command.options = {{"--limit", 'l', "NUMBER", "Lines, 1 to 500 (default 50)."}};
    command.examples = {{"devops events SANDBOX_ID -l 10", "the first lines"}};
    command.run = devops_events;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
