#pragma once

#include "base/error.hpp"
#include "lifecycle/idempotency.hpp"
#include "lifecycle/pools.hpp"
#include "lifecycle/sandbox_events.hpp"
#include "lifecycle/sandbox_index.hpp"
#include "lifecycle/snapshots.hpp"
#include "model/create_request.hpp"
#include "model/fork_request.hpp"
#include "model/metadata.hpp"
#include "model/quota.hpp"
#include "net/stream.hpp"
#include "runtime/runtime.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::lifecycle {

/// How the agent of a sandbox is reached.
struct AgentAccess {
    model::Endpoints endpoints;
    std::string token;
    std::string tenant;
    model::SandboxStatus status;
    std::optional<std::int64_t> renew_seconds;  ///< by how much traffic extends its life
};

/// Who asks.
struct Requester {
    std::string tenant;  ///< empty where there is one tenant
    model::Quota quota;  ///< what it may have at once
};

/// The life of sandboxes, as the API asks for it: create, read, renew, patch, remove. Reads come
/// from memory. Runs on one event loop.
class Lifecycle {
  public:
    virtual ~Lifecycle() = default;

    /// Finds what there is and begins. Once.
    virtual Awaitable<Status> start() = 0;
    /// Waits for changes in flight, at most `grace`. Sandboxes live on.
    virtual Awaitable<void> stop(std::chrono::milliseconds grace) = 0;

    /// What create answers.
    struct Created {
        std::string id;
        std::string json;
        bool replayed = false;  ///< by its Idempotency-Key
    };
    /// Returns when a command works in the sandbox; on failure nothing is left of it. Runs to its
    /// end whether or not anybody still waits.
    virtual Awaitable<Result<Created>> create(model::CreateRequest request,
                                              std::optional<IdempotencyKey> key,
                                              Requester requester) = 0;
    /// `<P>::SANDBOX_NOT_FOUND`. The JSON is valid until the next suspension.
    [[nodiscard]] Result<std::string_view> get(std::string_view id) const;
    [[nodiscard]] std::string list(const ListQuery& query) const { return index().list(query); }
    /// Concurrent removals of one sandbox are one.
    virtual Awaitable<Status> remove(std::string id) = 0;
    /// The new expiry. Past times 400, sandboxes without expiry 409 (lifecycle 2.4).
    virtual Awaitable<Result<Timestamp>> renew(std::string id, Timestamp expires_at) = 0;
    /// Lets it live at least `by` from now: never shortens. The expiry that holds then.
    virtual Awaitable<Result<Timestamp>> extend(std::string id, std::chrono::seconds by) = 0;
    /// The sandbox's JSON after the patch.
    virtual Awaitable<Result<std::string>> patch_metadata(std::string id,
                                                          model::MetadataPatch patch) = 0;
    [[nodiscard]] virtual Result<AgentAccess> agent(std::string_view id) const = 0;
    /// 409 `<P>::SANDBOX_NOT_RUNNING` / `_NOT_PAUSED`, 500 `_PAUSE_FAILED` / `_RESUME_FAILED`; 501
    /// where the runtime cannot.
    virtual Awaitable<Status> pause(std::string id) = 0;
    virtual Awaitable<Status> resume(std::string id) = 0;
    /// Running copies of a sandbox that runs or is paused, as their JSON: all or none. They have
    /// its files, not its processes. 409 in other states, 501 where the runtime cannot; runs to its
    /// end whether or not anybody still waits.
    virtual Awaitable<Result<std::vector<std::string>>> fork(std::string id,
                                                             model::ForkRequest request,
                                                             Requester requester) = 0;
    virtual Snapshots& snapshots() = 0;
    virtual Pools& pools() = 0;

    // Diagnostics (lifecycle 5).

    /// What the sandbox's entrypoint wrote; empty when the runtime knows nothing of it any more.
    virtual Awaitable<Result<std::string>> logs(std::string id, runtime::LogQuery query) = 0;
    /// As its backend sees it. Where the backend knows nothing of it, what its row says.
    virtual Awaitable<Result<runtime::Inspection>> inspect(std::string id) = 0;
    /// What sandboxes use that are somebody's, of at most `limit` of them.
    virtual Awaitable<Result<std::vector<runtime::SandboxUsage>>> usage(std::size_t limit) = 0;
    /// Oldest first; empty when it is unknown.
    [[nodiscard]] std::vector<SandboxEvent> events(std::string_view id) const;

    [[nodiscard]] virtual const SandboxIndex& index() const = 0;
    [[nodiscard]] virtual runtime::Capabilities capabilities() const = 0;
    [[nodiscard]] virtual runtime::Figures figures() const = 0;
    /// Prefix of wire errors: "NATIVE", "DOCKER", "KUBERNETES".
    [[nodiscard]] virtual std::string_view error_prefix() const = 0;
    [[nodiscard]] std::string error_code(std::string_view suffix) const;
    /// The rules of renew() and extend() (lifecycle 2.4): 404, 409 without an expiry, 400 for past
    /// times; of extend(): 409 unless it runs.
    [[nodiscard]] Status check_renewal(const std::string& id, Timestamp expires_at) const;
    [[nodiscard]] Status check_extension(const std::string& id) const;
    /// What is said of an id that nobody has.
    [[nodiscard]] Error not_found(std::string_view id) const;
};

}  // namespace opensandbox::lifecycle
