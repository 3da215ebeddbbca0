#pragma once

#include "mcp/call.hpp"
#include "opensandbox/error.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::mcp {

using ToolResult = sdk::Result<json::object>;

/// What a client may think of a tool before it calls it.
enum class Effect : unsigned char {
    reads,    ///< changes nothing
    adds,     ///< changes something, destroys nothing
    changes,  ///< the same when called twice, may destroy what was there
    destroys  ///< may destroy, and differs when called twice
};

/// One tool: its description for clients, and the work.
struct Tool {
    std::string_view name;
    std::string_view title;
    std::string_view description;
    Effect effect = Effect::reads;
    json::object input;
    json::object output;
    std::function<Awaitable<ToolResult>(Call&)> run;
};

class ToolTable {
  public:
    ToolTable();
    [[nodiscard]] const Tool* find(std::string_view name) const;
    [[nodiscard]] const std::vector<Tool>& all() const { return tools_; }
    /// The result of `tools/list`.
    [[nodiscard]] const json::object& list() const { return list_; }

  private:
    std::vector<Tool> tools_;
    json::object list_;
};

void add_sandbox_tools(std::vector<Tool>& tools);
void add_state_tools(std::vector<Tool>& tools);
void add_snapshot_tools(std::vector<Tool>& tools);
void add_command_tools(std::vector<Tool>& tools);
void add_code_tools(std::vector<Tool>& tools);
void add_session_tools(std::vector<Tool>& tools);
void add_file_tools(std::vector<Tool>& tools);
void add_file_content_tools(std::vector<Tool>& tools);
void add_egress_tools(std::vector<Tool>& tools);
void add_diagnostic_tools(std::vector<Tool>& tools);

}  // namespace opensandbox::mcp
