#pragma once

#include "opensandbox/code.hpp"
#include "opensandbox/commands.hpp"
#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"
#include "opensandbox/files.hpp"
#include "opensandbox/metrics.hpp"
#include "opensandbox/pty.hpp"
#include "opensandbox/registry_auth.hpp"
#include "opensandbox/sessions.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Quick start, with the server on this machine:
///
///     #include <opensandbox/blocking.hpp>
///     #include <opensandbox/sandbox.hpp>
///     #include <iostream>
///
///     int main() {
///         using namespace opensandbox::sdk;
///         EventLoop loop;
///         Connection server = loop.connect().value();
///         Sandbox sandbox = loop.wait(Sandbox::create(server, CreateOptions("host"))).value();
///         CommandRequest hello("echo hello from $(hostname)");
///         Execution done = loop.wait(sandbox.commands().run(hello)).value();
///         std::cout << done.output;
///         loop.wait(sandbox.kill()).value();
///         return done.exit_code.value_or(1);
///     }
///
/// In a coroutine the same reads `co_await Sandbox::create(…)`, and nothing blocks.
namespace opensandbox::sdk {

using TimePoint = std::chrono::sys_time<std::chrono::microseconds>;

/// What to create. One of `image`, `snapshot_id` and `template_id` is set.
struct CreateOptions {
    std::string image;
    std::optional<RegistryAuth> image_auth;
    std::string snapshot_id;
    std::string template_id;
    /// Until the sandbox is deleted by the server; empty: never. At least 60 s.
    std::optional<std::chrono::seconds> timeout = std::chrono::seconds(600);
    std::vector<std::pair<std::string, std::string>> environment;
    std::map<std::string, std::string> metadata;
    std::map<std::string, std::string> extensions;
    std::map<std::string, std::string> resource_limits = {{"cpu", "1"}, {"memory", "2Gi"}};
    std::vector<std::string> entrypoint = {"tail", "-f", "/dev/null"};
    std::string network_policy;  ///< JSON object, or empty
    std::string volumes;         ///< JSON array, or empty
    bool credential_proxy = false;
    /// With credential_proxy: "all" or "credential-bound", only what a credential is bound to;
    /// empty: the server's choice. A server that does another is an error
    /// (INTERCEPTION_MODE_MISMATCH), and the sandbox is deleted again.
    std::string interception_mode;
    /// A whole request body as JSON; when set, it is sent as it stands instead of all above.
    std::string request_body;

    bool skip_health_check = false;
    std::chrono::milliseconds ready_timeout{30'000};
};

/// Copies of a sandbox. What is not set is as in the sandbox that is copied.
struct ForkOptions {
    unsigned count = 1;  ///< 1 to 100
    /// Until they are deleted by the server, at least 60 s; `no_timeout`: never.
    std::optional<std::chrono::seconds> timeout;
    bool no_timeout = false;
    std::vector<std::pair<std::string, std::string>> environment;  ///< over the source's
    std::map<std::string, std::string> metadata;                   ///< over the source's
    std::vector<std::string> entrypoint;
};

struct ConnectOptions {
    bool skip_health_check = false;
    std::chrono::milliseconds ready_timeout{30'000};
};

struct Platform {
    std::string os;
    std::string arch;
};

/// A sandbox as the server describes it.
struct SandboxInfo {
    std::string id;
    std::string state;  ///< Pending, Running, Pausing, Paused, Resuming, Stopping, Terminated, …
    std::optional<std::string> reason;
    std::optional<std::string> message;
    std::optional<TimePoint> last_transition_at;
    std::optional<std::string> image;
    std::optional<std::string> snapshot_id;
    /// "all" or "credential-bound", as it is in force; empty where nothing is intercepted.
    std::optional<std::string> interception_mode;
    std::optional<Platform> platform;
    std::vector<std::string> entrypoint;
    std::map<std::string, std::string> metadata;
    std::map<std::string, std::string> extensions;
    TimePoint created_at{};
    std::optional<TimePoint> expires_at;  ///< empty: never
};

struct ListFilter {
    std::vector<std::string> states;              ///< any of them; empty: all
    std::map<std::string, std::string> metadata;  ///< all of them
    std::optional<unsigned> page;                 ///< from 1
    std::optional<unsigned> page_size;            ///< 1 to 200
};

struct Pagination {
    std::int64_t page = 1;
    std::int64_t page_size = 0;
    std::int64_t total_items = 0;
    std::int64_t total_pages = 0;
    bool has_next_page = false;
};

struct SandboxPage {
    std::vector<SandboxInfo> items;
    Pagination pagination;
};

/// How to reach a port of a sandbox: `endpoint` without a scheme ("host:port/path") and the header
/// fields that every request to it must carry.
struct Endpoint {
    std::string endpoint;
    std::map<std::string, std::string> headers;
    /// Where the server says that the sandbox comes from ("template"); mostly empty.
    std::optional<std::string> origin;
};

/// What can be done with sandboxes by their id alone. Cheap to copy.
class Sandboxes {
  public:
    explicit Sandboxes(Connection connection) : connection_(std::move(connection)) {}

    boost::asio::awaitable<Result<SandboxInfo>> get(std::string id) const;
    boost::asio::awaitable<Result<SandboxPage>> list(ListFilter filter = {}) const;
    boost::asio::awaitable<Status> kill(std::string id) const;
    boost::asio::awaitable<Status> pause(std::string id) const;
    boost::asio::awaitable<Status> resume(std::string id) const;
    /// Running copies of the file system of a sandbox that runs or is paused: all or none. Their
    /// agents answer.
    boost::asio::awaitable<Result<std::vector<SandboxInfo>>> fork(std::string id,
                                                                  ForkOptions options = {}) const;
    /// Sets the expiry to now plus `timeout`; returns the instant.
    boost::asio::awaitable<Result<TimePoint>> renew(std::string id,
                                                    std::chrono::seconds timeout) const;
    boost::asio::awaitable<Result<Endpoint>> endpoint(std::string id, std::uint16_t port) const;
    /// Sets the given keys and removes those without value; others stay.
    boost::asio::awaitable<Result<SandboxInfo>> patch_metadata(
        std::string id, std::map<std::string, std::optional<std::string>> changes) const;

  private:
    Connection connection_;
};

/// A sandbox at work. Cheap to copy; dropping it does not delete the sandbox.
class Sandbox {
  public:
    /// Creates a sandbox and waits until its agent answers. On failure it is deleted again.
    static boost::asio::awaitable<Result<Sandbox>> create(Connection connection,
                                                          CreateOptions options);
    /// Finds a sandbox's agent and waits until it answers.
    static boost::asio::awaitable<Result<Sandbox>> connect(Connection connection, std::string id,
                                                           ConnectOptions options = {});

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] Code code() const;
    [[nodiscard]] Terminals terminals() const;
    [[nodiscard]] Commands commands() const;
    [[nodiscard]] Files files() const;
    [[nodiscard]] Sessions sessions() const;

    boost::asio::awaitable<Result<SandboxInfo>> info() const;
    boost::asio::awaitable<Result<TimePoint>> renew(std::chrono::seconds timeout) const;
    boost::asio::awaitable<Result<Endpoint>> endpoint(std::uint16_t port) const;
    boost::asio::awaitable<Result<SandboxInfo>> patch_metadata(
        std::map<std::string, std::optional<std::string>> changes) const;
    boost::asio::awaitable<Status> kill() const;

    /// Whether the agent answers; an Error only when asking was refused for good (401, 403).
    boost::asio::awaitable<Result<bool>> is_healthy() const;
    boost::asio::awaitable<Result<Metrics>> metrics() const;
    boost::asio::awaitable<Result<MetricsStream>> watch_metrics() const;

  private:
    Sandbox(Connection connection, std::string id, std::shared_ptr<const Route> agent);
    Connection connection_;
    std::string id_;
    std::shared_ptr<const Route> agent_;
};

}  // namespace opensandbox::sdk
