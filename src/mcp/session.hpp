#pragma once

#include "mcp/json_rpc.hpp"
#include "mcp/tool.hpp"
#include "mcp/workspace.hpp"
#include "net/task.hpp"

#include <map>
#include <memory>
#include <string>

namespace opensandbox::mcp {

/// The protocol versions that are spoken, newest first.
inline constexpr std::string_view kProtocolVersions[] = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                         "2024-11-05"};
bool is_protocol_version(std::string_view version);

/// Where the answers to one payload go.
class Outlet {
  public:
    virtual ~Outlet() = default;
    /// A notification that belongs to a request under way.
    virtual void notify(std::string message) = 0;
    /// The answer to a request: once for each, unless abandon() is called.
    virtual void reply(std::string message) = 0;
    /// A request was cancelled and gets no answer.
    virtual void abandon() = 0;
};

/// One client's side of the protocol, whatever carries it: negotiation, the table of tools, calls
/// that run side by side, their progress and cancellation. Used on one event loop.
class Session : public std::enable_shared_from_this<Session> {
  public:
    Session(asio::any_io_executor executor, const ToolTable& tools, sdk::Connection server,
            WorkspaceLimits limits, std::size_t max_calls);
    ~Session();

    /// Takes one message in. The outlet of a request is kept until its answer was given.
    void take(const Received& received, const std::shared_ptr<Outlet>& outlet);
    /// What the client and we agreed upon; empty before `initialize`.
    [[nodiscard]] const std::string& version() const { return version_; }

    [[nodiscard]] std::size_t running() const { return calls_.size(); }
    /// Gives every call up.
    void cancel_all();
    /// Waits until no call runs; false when the time passed first.
    Awaitable<bool> idle_within(std::chrono::milliseconds limit);

  private:
    struct Running;
    void take_request(const Message& message, const std::shared_ptr<Outlet>& outlet);
    void take_notification(const Message& message);
    void initialize(const Message& message, Outlet& outlet);
    void call_tool(const Message& message, const std::shared_ptr<Outlet>& outlet);
    Awaitable<void> run(std::shared_ptr<Running> running);
    void end(const Running& running);

    asio::any_io_executor executor_;
    const ToolTable& tools_;
    Workspace workspace_;
    std::size_t max_calls_;
    std::string version_;
    std::map<std::string, std::shared_ptr<Running>> calls_;  ///< by id as JSON
    net::Event ended_;
};

}  // namespace opensandbox::mcp
