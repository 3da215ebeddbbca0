#include "opensandbox/code.hpp"

#include "mcp/tool.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/tools/execution.hpp"
#include "mcp/workspace.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

Awaitable<void> interrupt_run(sdk::Code code, std::string context_id) {
    // That it has ended by itself meanwhile is as good.
    (void)co_await code.interrupt(std::move(context_id));
}

sdk::Result<sdk::CodeRequest> read_code(const Call& call) {
    sdk::CodeRequest request(call.text("code"), call.text("language"));
    request.context_id = call.text("context_id");
    if (request.code.empty()) return invalid("code", "expected text to run");
    if (request.language.empty() && request.context_id.empty()) {
        return invalid("language", "is required without context_id");
    }
    return request;
}

Awaitable<ToolResult> run_code(Call& call) {
    auto request = read_code(call);
    if (!request) co_return request.error();
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    const sdk::Code code = sandbox->code();
    // Given up before its context is known, it is interrupted as soon as it is.
    call.on_cancel([] {});
    auto stream = co_await code.stream(std::move(*request));
    if (!stream) co_return stream.error();
    auto document = co_await follow(call, std::move(*stream), [code](std::string context_id) {
        return interrupt_run(code, std::move(context_id));
    });
    if (!document) co_return document.error();
    // Code raises or does not: it has no exit code.
    document->erase("exit_code");
    (*document)["context_id"] = document->at("id");
    co_return document;
}

json::object code_input() {
    Object members = with_sandbox();
    members.required("code", schema::text(), "What to run")
        .nullable("language",
                  schema::one_of({"python", "javascript", "typescript", "bash", "java", "go"}),
                  "Runs in the default context of this language")
        .nullable("context_id", schema::text(),
                  "Runs in this context, as an earlier answer named it")
        .nullable("max_output_bytes", schema::integer(1, kLargestOutput),
                  "Of each stream, and of all results, in the answer; the rest of the streams is "
                  "kept for command_logs");
    return add_connect_if_missing(members).build();
}

json::object run_output() {
    json::object out = execution_schema();
    json::object& properties = out["properties"].as_object();
    properties.erase("exit_code");
    json::object context = schema::text();
    context["description"] = "What keeps the definitions of this run for later ones";
    properties["context_id"] = std::move(context);
    out["required"].as_array().emplace_back("context_id");
    return out;
}

}  // namespace

void add_code_tools(std::vector<Tool>& tools) {
    tools.push_back({"code_run", "Run code",
                     "Runs code in an interpreter that keeps variables, imports and functions from "
                     "run to run. Returns output, results (what was displayed and the value of the "
                     "last expression, by media type) and, when the code raised something, error.",
                     Effect::destroys, code_input(), run_output(), run_code});
}

}  // namespace opensandbox::mcp
