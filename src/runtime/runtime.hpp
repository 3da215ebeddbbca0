#pragma once

#include "base/clock.hpp"
#include "net/stream.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What every backend must do. The lifecycle talks to this and to nothing behind it.
namespace opensandbox::runtime {

/// Ceilings of one sandbox; 0 means that the backend's default applies.
struct ResourceLimits {
    double cpu_cores = 0;  ///< 0.01 or more
    std::uint64_t memory_bytes = 0;
    std::uint64_t pids = 0;
};

/// What to make.
struct SandboxSpec {
    SandboxSpec() = default;
    std::string id;                                        ///< UUID
    std::string image;                                     ///< reference as requested
    std::vector<std::string> entrypoint;                   ///< argv, not empty
    std::vector<std::pair<std::string, std::string>> env;  ///< over the image's own
    ResourceLimits limits;
    std::string agent_token;  ///< for X-EXECD-ACCESS-TOKEN
};

/// Where the agent of a running sandbox listens, seen from the server's host.
struct AgentAddress {
    AgentAddress() = default;
    AgentAddress(std::string h, std::uint16_t p) : host(std::move(h)), port(p) {}
    std::string host;
    std::uint16_t port = 0;
};

/// How a sandbox ended.
struct Exit {
    int code = 0;         ///< exit code; -1 when killed by a signal
    int signal = 0;       ///< the signal, or 0
    std::string reason;   ///< a word for status.reason when the backend knows better: OOM_KILLED…
    std::string message;  ///< a sentence for people
    Timestamp at{};
};

/// What the backend has under our label or name, whether or not the store knows of it.
struct Observed {
    Observed() = default;
    std::string id;
    AgentAddress agent;
    std::optional<Exit> exit;  ///< empty while it runs
};

/// Figures for /metrics.
struct Figures {
    std::uint64_t slots_ready = 0;  ///< blanks waiting
    std::uint64_t slot_hits = 0;    ///< creates served from a blank
    std::uint64_t slot_misses = 0;  ///< creates that had to make one
    std::uint64_t sandboxes = 0;
    friend bool operator==(const Figures&, const Figures&) = default;
};

/// All functions run on the server's event loop and never block it.
class Runtime {
  public:
    virtual ~Runtime() = default;

    /// Prefix of wire errors: "NATIVE", "DOCKER", "KUBERNETES".
    [[nodiscard]] virtual std::string_view error_prefix() const = 0;
    /// Makes the host ready and connects to what outlives the server. Called once, before the rest.
    virtual Awaitable<Status> start() = 0;
    /// Returns when a command works in the sandbox. On failure nothing is left of it.
    /// `not_found` with wire <PREFIX>::SANDBOX_IMAGE_PULL_FAILED names an unknown image.
    virtual Awaitable<Result<AgentAddress>> create(const SandboxSpec& spec) = 0;
    /// Ends it and removes all it had; succeeds when there is nothing. Returns when nothing is
    /// left.
    virtual Awaitable<Status> destroy(const std::string& id) = 0;
    /// Everything that exists, for recovery at start.
    virtual Awaitable<Result<std::vector<Observed>>> list() = 0;
    /// Called on the event loop when a sandbox ends by itself.
    virtual void on_exit(std::function<void(const std::string& id, const Exit&)> listener) = 0;
    [[nodiscard]] virtual Figures figures() const = 0;
    /// Lets go; sandboxes live on.
    virtual Awaitable<void> stop() = 0;
};

}  // namespace opensandbox::runtime
