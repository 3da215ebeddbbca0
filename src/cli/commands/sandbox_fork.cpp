#include "cli/invocation.hpp"
#include "sdk/document/describe.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::string_view kForked = "SANDBOX_ID";

sdk::ForkOptions read_options(Arguments& arguments) {
    sdk::ForkOptions options;
    if (auto count = arguments.integer("--count", 1, 100)) {
        options.count = static_cast<unsigned>(*count);
    }
    if (auto timeout = arguments.duration_or_none("--timeout")) {
        options.no_timeout = !timeout->has_value();
        if (*timeout) options.timeout = std::chrono::ceil<std::chrono::seconds>(**timeout);
    }
    options.environment = arguments.pairs("--env");
    for (auto& [name, value] : arguments.pairs("--metadata"))
        options.metadata[name] = value;
    options.entrypoint = arguments.all("--entrypoint");
    return options;
}

Awaitable<Outcome> fork_sandbox(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto options = read_options(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    auto made = co_await sandboxes.fork(arguments.one(kForked), std::move(options));
    if (!made) co_return made.error();
    json::array items;
    for (const auto& info : *made)
        items.emplace_back(describe(info));
    const json::object document{{"items", items}};
    co_return invocation.print_list(
        document, items, {{"ID", "id"}, {"STATUS", "status.state"}, {"EXPIRES_AT", "expires_at"}});
}

}  // namespace

void add_sandbox_fork_command(CommandTable& table) {
    Command command =
        make_document_command("sandbox", "fork", "Make running copies of a sandbox's files.",
                              {{kForked, "The sandbox's id; it runs or is paused."}}, fork_sandbox);
    command.options = {
        {"--count", 'n', "NUMBER", "Copies to make, 1 to 100 (default 1)."},
        {"--timeout", 't', "DURATION|none", "Life of the copies; as the sandbox unless given."},
        {"--env", 'e', "KEY=VALUE", "Variable to set in the copies.", true},
        {"--metadata", 'm', "KEY=VALUE", "Label of the copies, over the sandbox's.", true},
        {"--entrypoint", 0, "ARGUMENT",
         "Program and arguments, one each; as the sandbox unless given.", true}};
    command.details =
        "All copies are made or none. They have the sandbox's files as they are at one moment,\n"
        "its environment, limits and labels, but none of its processes and volumes.";
    command.examples = {{"sandbox fork SANDBOX_ID -n 50", "fifty copies"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
