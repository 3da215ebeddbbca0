#include "cli/invocation.hpp"
#include "sdk/document/describe.hpp"

namespace opensandbox::cli {

namespace {

std::string with_line_end(std::string text) {
    if (!text.ends_with('\n')) text += '\n';
    return text;
}

Outcome print_content(Invocation& invocation, const sdk::DiagnosticContent& content) {
    if (invocation.format() != Format::raw) return invocation.print_object(describe(content));
    if (content.truncated) invocation.terminal().print_note("Warning: only a part of it is here.");
    for (const auto& warning : content.warnings.value_or(std::vector<std::string>())) {
        invocation.terminal().print_note("Warning: " + warning);
    }
    if (content.delivery == "inline") {
        return invocation.print_raw(with_line_end(content.content.value_or("")));
    }
    if (content.content_url) return invocation.print_raw(*content.content_url + "\n");
    return sdk::Error(sdk::ErrorCode::protocol,
                      "the server sent neither the text nor where to get it");
}

Awaitable<Outcome> diagnostic_logs(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Diagnostics diagnostics(*connection);
    Arguments& arguments = invocation.arguments();
    auto content = co_await diagnostics.logs(arguments.one("SANDBOX_ID"),
                                             arguments.get("--scope").value_or(""));
    if (!content) co_return content.error();
    co_return print_content(invocation, *content);
}

Awaitable<Outcome> events(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Diagnostics diagnostics(*connection);
    Arguments& arguments = invocation.arguments();
    auto content = co_await diagnostics.events(arguments.one("SANDBOX_ID"),
                                               arguments.get("--scope").value_or(""));
    if (!content) co_return content.error();
    co_return print_content(invocation, *content);
}

}  // namespace

void add_diagnostics_commands(CommandTable& table) {
    Command command =
        make_document_command("diagnostics", "logs", "Print what a sandbox's entrypoint wrote.",
                              {kSandboxId}, diagnostic_logs);
    command.formats = {Format::raw, Format::table, Format::json, Format::yaml};
    command.options = {
        {"--scope", 's', "SCOPE", "container or all; a server may know others.", false, true}};
    command.examples = {{"diagnostics logs SANDBOX_ID -s container", "the text alone"},
                        {"diagnostics logs SANDBOX_ID -s all -o json", "and whether it is whole"}};
    table.commands.push_back(command);

    command.name = "events";
    command.summary = "Print what happened to a sandbox.";
    command.options = {
        {"--scope", 's', "SCOPE", "runtime or all; a server may know others.", false, true}};
    command.examples = {{"diagnostics events SANDBOX_ID -s runtime", "its start, end and health"}};
    command.run = events;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
