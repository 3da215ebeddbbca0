#include "mcp/tool.hpp"

#include <algorithm>

namespace opensandbox::mcp {

namespace {

json::object annotations_of(const Tool& tool) {
    json::object out;
    out["title"] = tool.title;
    out["readOnlyHint"] = tool.effect == Effect::reads;
    out["destructiveHint"] = tool.effect == Effect::changes || tool.effect == Effect::destroys;
    out["idempotentHint"] = tool.effect == Effect::reads || tool.effect == Effect::changes;
    // A sandbox may be let out to the network.
    out["openWorldHint"] =
        tool.name == "command_run" || tool.name == "session_run" || tool.name == "code_run";
    return out;
}

json::object describe(const Tool& tool) {
    json::object out;
    out["name"] = tool.name;
    out["title"] = tool.title;
    out["description"] = tool.description;
    out["inputSchema"] = tool.input;
    out["outputSchema"] = tool.output;
    out["annotations"] = annotations_of(tool);
    return out;
}

}  // namespace

ToolTable::ToolTable() {
    add_sandbox_tools(tools_);
    add_state_tools(tools_);
    add_snapshot_tools(tools_);
    add_command_tools(tools_);
    add_session_tools(tools_);
    add_code_tools(tools_);
    add_file_tools(tools_);
    add_file_content_tools(tools_);
    add_egress_tools(tools_);
    add_diagnostic_tools(tools_);
    json::array described;
    for (const Tool& tool : tools_)
        described.emplace_back(describe(tool));
    list_["tools"] = std::move(described);
}

const Tool* ToolTable::find(std::string_view name) const {
    auto found = std::ranges::find(tools_, name, &Tool::name);
    return found == tools_.end() ? nullptr : &*found;
}

}  // namespace opensandbox::mcp
