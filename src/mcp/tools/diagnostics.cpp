#include "opensandbox/diagnostics.hpp"

#include "mcp/output_pages.hpp"
#include "mcp/tool.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/workspace.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

json::object document(const Call& call, const sdk::DiagnosticContent& from) {
    json::object out;
    out["sandbox_id"] = from.sandbox_id;
    out["kind"] = from.kind;
    out["scope"] = from.scope;
    out["truncated"] = from.truncated;
    out["content"] = nullptr;
    out["cursor"] = nullptr;
    if (from.content) {
        const auto cursor = static_cast<std::uint64_t>(call.integer("cursor", 0));
        Page page = page_of(*from.content, cursor, call.workspace().limits().output);
        out["content"] = as_text(std::move(page.text));
        if (page.next) out["cursor"] = *page.next;
    }
    out["content_url"] = from.content_url ? json::value(*from.content_url) : json::value();
    json::array warnings;
    for (const std::string& warning : from.warnings.value_or(std::vector<std::string>()))
        warnings.emplace_back(warning);
    out["warnings"] = std::move(warnings);
    return out;
}

Awaitable<ToolResult> diagnostic_logs(Call& call) {
    sdk::Diagnostics diagnostics(call.workspace().server());
    auto content = co_await diagnostics.logs(call.text("sandbox_id"),
                                             call.optional_text("scope").value_or("container"));
    if (!content) co_return content.error();
    co_return document(call, *content);
}

Awaitable<ToolResult> events(Call& call) {
    sdk::Diagnostics diagnostics(call.workspace().server());
    auto content = co_await diagnostics.events(call.text("sandbox_id"),
                                               call.optional_text("scope").value_or("runtime"));
    if (!content) co_return content.error();
    co_return document(call, *content);
}

json::object input(std::string_view scope) {
    return with_sandbox()
        .optional("scope", schema::text(), json::value(scope), "Or \"all\"")
        .optional("cursor", schema::integer(0, INT64_MAX), 0, "Where to go on")
        .build();
}

json::object output() {
    return Object()
        .required("sandbox_id", schema::text())
        .required("kind", schema::text())
        .required("scope", schema::text())
        .required("truncated", schema::boolean(), "Whether the server left something out")
        .nullable("content", schema::text())
        .nullable("cursor", schema::integer(), "Pass it to go on; null: that was all")
        .nullable("content_url", schema::text(), "Where the text is when it is not in content")
        .possible("warnings", schema::list_of(schema::text()))
        .build(true);
}

}  // namespace

void add_diagnostic_tools(std::vector<Tool>& tools) {
    tools.push_back({"diagnostics_logs", "Logs of a sandbox",
                     "What the sandbox's entrypoint and agent have written: why it does not start "
                     "or answer.",
                     Effect::reads, input("container"), output(), diagnostic_logs});
    tools.push_back({"diagnostics_events", "Events of a sandbox",
                     "What happened to a sandbox: image, start, limits, end.", Effect::reads,
                     input("runtime"), output(), events});
}

}  // namespace opensandbox::mcp
