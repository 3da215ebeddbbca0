#include "sdk/fields/command.hpp"

#include "mcp/document_schema.hpp"
#include "mcp/tool.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/tools/execution.hpp"
#include "mcp/workspace.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

Awaitable<void> interrupt_command(sdk::Commands commands, std::string id) {
    // That it has ended by itself meanwhile is as good.
    (void)co_await commands.interrupt(std::move(id));
}

sdk::Result<sdk::CommandRequest> read_command(const Call& call) {
    sdk::CommandRequest request(call.text("command"));
    if (request.command.empty()) return invalid("command", "expected text for the shell");
    request.working_directory = call.text("working_directory");
    request.timeout = milliseconds_of(call.number("timeout_seconds", 0));
    request.environment = call.map("env");
    return request;
}

Awaitable<ToolResult> run_command(Call& call) {
    auto request = read_command(call);
    if (!request) co_return request.error();
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    sdk::Commands commands = sandbox->commands();
    if (call.flag("background")) {
        auto id = co_await commands.start(std::move(*request));
        if (!id) co_return id.error();
        co_return started_document(*id);
    }
    // Given up before its id is known, it is interrupted as soon as it is.
    call.on_cancel([] {});
    auto stream = co_await commands.stream(std::move(*request));
    if (!stream) co_return stream.error();
    co_return co_await follow(call, std::move(*stream), [commands](std::string id) {
        return interrupt_command(commands, std::move(id));
    });
}

Awaitable<ToolResult> interrupt(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto done = co_await sandbox->commands().interrupt(call.text("execution_id"));
    if (!done) co_return done.error();
    co_return status_document("interrupted");
}

Awaitable<ToolResult> status(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto found = co_await sandbox->commands().status(call.text("execution_id"));
    if (!found) co_return found.error();
    co_return sdk::describe(*found);
}

json::object logs_document(Page page, std::string_view stream) {
    json::object out;
    out["stream"] = stream;
    out["content"] = as_text(std::move(page.text));
    out["cursor"] = page.next ? json::value(*page.next) : json::value();
    out["more"] = page.next.has_value();
    return out;
}

/// Output of a command in the background: what is there so far, and from where to go on later.
Awaitable<ToolResult> agent_logs(sdk::Sandbox sandbox, std::string id, std::int64_t cursor,
                                 std::size_t limit) {
    auto logs = co_await sandbox.commands().logs(std::move(id), cursor);
    if (!logs) co_return logs.error();
    Page page = page_of(logs->content, 0, limit);
    const auto taken = static_cast<std::int64_t>(page.text.size());
    const bool more = page.next.has_value();
    json::object out = logs_document(std::move(page), "both");
    out["cursor"] = more ? cursor + taken : logs->cursor.value_or(cursor + taken);
    out["more"] = more;
    co_return out;
}

Awaitable<ToolResult> command_logs(Call& call) {
    const std::string id = call.text("execution_id");
    const std::int64_t cursor = call.integer("cursor", 0);
    Workspace& workspace = call.workspace();
    const auto limit = static_cast<std::size_t>(
        call.integer("max_output_bytes", static_cast<std::int64_t>(workspace.limits().output)));
    const std::string stream = call.optional_text("stream").value_or("stdout");
    const OutputStream which = stream == "stderr" ? OutputStream::error : OutputStream::standard;
    if (const auto* kept = workspace.outputs().find(call.text("sandbox_id"), id, which)) {
        co_return logs_document(page_of(*kept, static_cast<std::uint64_t>(cursor), limit), stream);
    }
    auto sandbox = co_await workspace.sandbox(call);
    if (!sandbox) co_return sandbox.error();
    co_return co_await agent_logs(std::move(*sandbox), id, cursor, limit);
}

json::object command_input() {
    Object members = with_sandbox();
    members.required("command", schema::text(), "Text for the sandbox's shell")
        .optional("background", schema::boolean(), false,
                  "Return at once with its id; see command_status and command_logs")
        .nullable("working_directory", schema::text(), "Must exist")
        .nullable("timeout_seconds", schema::number(), "Killed after it; missing: no limit")
        .nullable("env", schema::map_of_text(), "Further variables")
        .nullable("max_output_bytes", schema::integer(1, kLargestOutput),
                  "Of each stream in the answer; the rest is kept for command_logs");
    return add_connect_if_missing(members).build();
}

Object with_execution() {
    Object members = with_sandbox();
    members.required("execution_id", schema::text(), "The id that command_run gave");
    return members;
}

json::object execution_input() {
    Object members = with_execution();
    return add_connect_if_missing(members).build();
}

json::object logs_input() {
    Object members = with_execution();
    members.optional("cursor", schema::integer(0, INT64_MAX), 0, "Where to go on")
        .optional("stream", schema::one_of({"stdout", "stderr"}), "stdout",
                  "Of a foreground command; one in the background has both in one")
        .nullable("max_output_bytes", schema::integer(1, kLargestOutput), "In this answer");
    return add_connect_if_missing(members).build();
}

json::object logs_output() {
    return Object()
        .required("stream", schema::text(), "stdout, stderr, or both")
        .required("content", schema::text())
        .nullable("cursor", schema::integer(), "Pass it to go on; null: that was all")
        .required("more", schema::boolean(), "Whether more is there at this moment")
        .build(true);
}

}  // namespace

void add_command_tools(std::vector<Tool>& tools) {
    tools.push_back({"command_run", "Run a command",
                     "Runs shell text in the sandbox and returns exit_code and output. A failing "
                     "command is no failing call: look at exit_code. For a server or other long "
                     "work use background=true. Each run is a shell of its own: use && or "
                     "session_run to keep directory and variables.",
                     Effect::destroys, command_input(), execution_schema(), run_command});
    tools.push_back({"command_interrupt", "Stop a command",
                     "Sends SIGTERM, and SIGKILL when that does not help.", Effect::changes,
                     execution_input(), status_schema(), interrupt});
    tools.push_back(
        {"command_status", "State of a command", "Whether a command still runs, and its exit code.",
         Effect::reads, execution_input(),
         document_schema<sdk::CommandStatus>(sdk::fields::kCommandStatusMembers), status});
    tools.push_back({"command_logs", "Output of a command",
                     "Output of a background command so far, or what did not fit the answer of a "
                     "foreground one. Pass the cursor of the last answer to go on.",
                     Effect::reads, logs_input(), logs_output(), command_logs});
}

}  // namespace opensandbox::mcp
