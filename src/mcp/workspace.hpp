#pragma once

#include "mcp/call.hpp"
#include "mcp/output_pages.hpp"
#include "opensandbox/sandbox.hpp"

#include <list>
#include <string>

namespace opensandbox::mcp {

/// Bounds of one session.
struct WorkspaceLimits {
    std::size_t sandboxes = 256;                  ///< connected at a time; the idlest goes first
    std::size_t output = std::size_t{64} << 10U;  ///< bytes of a stream or file in one answer
    std::size_t kept_per_stream = std::size_t{4} << 20U;
    std::size_t kept = std::size_t{32} << 20U;
};

/// What a session works with: the server, the sandboxes it has connected to, outputs kept.
class Workspace {
  public:
    Workspace(sdk::Connection server, WorkspaceLimits limits)
        : server_(std::move(server)),
          limits_(limits),
          outputs_(limits.kept_per_stream, limits.kept) {}

    [[nodiscard]] const sdk::Connection& server() const { return server_; }
    [[nodiscard]] sdk::Sandboxes sandboxes() const { return sdk::Sandboxes(server_); }
    [[nodiscard]] const WorkspaceLimits& limits() const { return limits_; }
    [[nodiscard]] KeptOutputs& outputs() { return outputs_; }

    void remember(sdk::Sandbox sandbox);
    void forget(std::string_view id);
    /// The sandbox of argument `sandbox_id`. One that is not connected is connected to when
    /// argument `connect_if_missing` says so, else it is an error that says what to do.
    Awaitable<sdk::Result<sdk::Sandbox>> sandbox(Call& call);

  private:
    sdk::Connection server_;
    WorkspaceLimits limits_;
    std::list<sdk::Sandbox> connected_;  ///< used last first
    KeptOutputs outputs_;
};

}  // namespace opensandbox::mcp
