#include "cli/invocation.hpp"
#include "cli/remote_run.hpp"
#include "cli/shell_quote.hpp"
#include "opensandbox/sessions.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::string_view kGroup = "command session";
constexpr std::string_view kSession = "SESSION_ID";
const Positional kSessionId{kSession, "The id that 'command session create' printed."};

Awaitable<Outcome> create_session(Invocation& invocation) {
    const auto directory = invocation.arguments().get("--workdir");
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto id = co_await sandbox->sessions().create(directory.value_or(""));
    if (!id) co_return id.error();
    json::object document;
    document["sandbox_id"] = sandbox->id();
    document["session_id"] = *id;
    document["working_directory"] = directory ? json::value(*directory) : json::value();
    co_return invocation.print_object(document);
}

sdk::SessionRequest read_session_request(Arguments& arguments) {
    sdk::SessionRequest request;
    if (arguments.has("--shell")) {
        for (const auto& word : arguments.rest("COMMAND"))
            request.command += (request.command.empty() ? "" : " ") + word;
    } else {
        request.command = shell_join(arguments.rest("COMMAND"));
    }
    request.working_directory = arguments.get("--workdir").value_or("");
    if (auto limit = arguments.duration("--timeout")) request.timeout = *limit;
    return request;
}

Awaitable<Outcome> run_session(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::SessionRequest request = read_session_request(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto stream = co_await sandbox->sessions().stream(arguments.one(kSession), std::move(request));
    if (!stream) co_return stream.error();
    // The agent ends a run whose reader has left, and keeps the shell.
    auto done = co_await pass_on(invocation, std::move(*stream));
    if (!done) co_return done.error();
    co_return finish_remote(invocation, *done);
}

Awaitable<Outcome> remove_session(Invocation& invocation) {
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const std::string id = invocation.arguments().one(kSession);
    auto removed = co_await sandbox->sessions().remove(id);
    if (!removed) co_return removed.error();
    co_return invocation.print_done("Deleted session: " + id);
}

}  // namespace

void add_session_commands(CommandTable& table) {
    Command command =
        make_document_command(kGroup, "create", "Make a shell that lasts until it is deleted.",
                              {kSandboxId}, create_session);
    command.options = {{"--workdir", 'w', "PATH", "Directory to start in; made if missing."}};
    command.examples = {{"command session create SANDBOX_ID -w /work", "one in /work"}};
    table.commands.push_back(std::move(command));

    command = Command();
    command.group = kGroup;
    command.name = "run";
    command.summary = "Run a command in such a shell.";
    command.details =
        "Its directory and exported variables are there in the next run. Output comes as it is\n"
        "made and the exit code is the command's own. Each word is quoted for the shell; --shell\n"
        "joins them as they are.";
    command.positionals = {
        kSandboxId, kSessionId, {"COMMAND", "Program and arguments.", Positional::Count::payload}};
    command.options = {
        {"--workdir", 'w', "PATH", "Directory for this run only."},
        {"--timeout", 't', "DURATION", "End it after this time (default: never)."},
        {"--shell", 0, "", "Let the shell see variables, pipes and quotes in the words."}};
    command.formats = {Format::raw};
    command.examples = {
        {"command session run SANDBOX_ID SESSION_ID -- cd /usr", "from now on in /usr"},
        {"command session run SANDBOX_ID SESSION_ID -- export GREETING=hi", "for later runs"},
        {"command session run SANDBOX_ID SESSION_ID --shell -- 'echo $GREETING | wc -c'",
         "use both"}};
    command.run = run_session;
    table.commands.push_back(std::move(command));

    command = make_document_command(kGroup, "delete", "End such a shell and what runs in it.",
                                    {kSandboxId, kSessionId}, remove_session);
    command.examples = {{"command session delete SANDBOX_ID SESSION_ID", "when it is done"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
