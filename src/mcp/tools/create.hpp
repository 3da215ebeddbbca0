#pragma once

#include "mcp/tool.hpp"
#include "opensandbox/sandbox.hpp"

namespace opensandbox::mcp {

/// Of a new sandbox, in seconds.
inline constexpr double kDefaultLifetime = 600;
/// How long it may take to answer, in seconds.
inline constexpr double kDefaultReady = 30;

/// Creates a sandbox, remembers it and describes it; one that is given up meanwhile is deleted
/// again. `what` is told as progress.
Awaitable<ToolResult> create_sandbox(Call& call, sdk::CreateOptions options, std::string what);

}  // namespace opensandbox::mcp
