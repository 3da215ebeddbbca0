#include "mcp/tool.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/tools/execution.hpp"
#include "mcp/workspace.hpp"
#include "opensandbox/sessions.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

Awaitable<ToolResult> create_session(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto id = co_await sandbox->sessions().create(call.text("working_directory"));
    if (!id) co_return id.error();
    json::object out;
    out["session_id"] = *id;
    co_return out;
}

Awaitable<void> interrupt_run(sdk::Commands commands, std::string id) {
    (void)co_await commands.interrupt(std::move(id));
}

Awaitable<ToolResult> run_session(Call& call) {
    sdk::SessionRequest request(call.text("command"));
    if (request.command.empty()) co_return invalid("command", "expected text for the shell");
    request.working_directory = call.text("working_directory");
    request.timeout = milliseconds_of(call.number("timeout_seconds", 0));
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    sdk::Commands commands = sandbox->commands();
    call.on_cancel([] {});
    auto stream = co_await sandbox->sessions().stream(call.text("session_id"), std::move(request));
    if (!stream) co_return stream.error();
    co_return co_await follow(call, std::move(*stream), [commands](std::string id) {
        return interrupt_run(commands, std::move(id));
    });
}

Awaitable<ToolResult> remove_session(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto removed = co_await sandbox->sessions().remove(call.text("session_id"));
    if (!removed) co_return removed.error();
    co_return status_document("deleted");
}

json::object session_input() {
    Object members = with_sandbox();
    members.nullable("working_directory", schema::text(), "Where it begins; made when missing");
    return add_connect_if_missing(members).build();
}

Object with_session() {
    Object members = with_sandbox();
    members.required("session_id", schema::text(), "From session_create");
    return members;
}

json::object session_run_input() {
    Object members = with_session();
    members.required("command", schema::text(), "Text for the shell")
        .nullable("working_directory", schema::text(), "For this run only")
        .nullable("timeout_seconds", schema::number(), "Ended after it; missing: no limit")
        .nullable("max_output_bytes", schema::integer(1, kLargestOutput),
                  "Of each stream in the answer; the rest is kept for command_logs");
    return add_connect_if_missing(members).build();
}

json::object remove_input() {
    Object members = with_session();
    return add_connect_if_missing(members).build();
}

}  // namespace

void add_session_tools(std::vector<Tool>& tools) {
    tools.push_back({"session_create", "Open a shell",
                     "A shell that keeps its directory and exported variables from run to run.",
                     Effect::adds, session_input(),
                     Object().required("session_id", schema::text()).build(true), create_session});
    tools.push_back({"session_run", "Run in a shell",
                     "Runs shell text in a shell of session_create; cd and export last.",
                     Effect::destroys, session_run_input(), execution_schema(), run_session});
    tools.push_back({"session_delete", "Close a shell", "Ends the shell and what runs in it.",
                     Effect::changes, remove_input(), status_schema(), remove_session});
}

}  // namespace opensandbox::mcp
