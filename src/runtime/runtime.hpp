#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "model/endpoints.hpp"
#include "model/lifecycle_hooks.hpp"
#include "model/network_policy.hpp"
#include "model/registry_login.hpp"
#include "model/resource_limits.hpp"
#include "model/sandbox.hpp"
#include "model/volume.hpp"
#include "net/stream.hpp"
#include "runtime/inspection.hpp"
#include "runtime/usage.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What every backend must do. The lifecycle talks to this and to nothing behind it.
namespace opensandbox::runtime {

using model::AgentAddress;
using model::Endpoints;
using model::ResourceLimits;

/// How a sandbox reaches others.
struct NetworkChoice {
    bool chosen = false;   ///< one of the next two was asked for, or explicitly neither
    bool none = false;     ///< nothing but its own loopback
    std::string shared;    ///< name of a network whose members reach each other; empty: none
    std::string hostname;  ///< a DNS label; empty: from the id
    std::vector<std::uint16_t> published;  ///< its ports that get one of the host's
};

/// A file system in memory, empty at first, which counts as the sandbox's memory.
struct MemoryVolume {
    std::string mount_path;  ///< absolute, inside
    std::uint64_t size = 0;  ///< bytes
};

/// A snapshot as its backend knows it.
struct SnapshotReference {
    std::string id;    ///< UUID of the API
    std::string data;  ///< the backend's own name of it: an image reference, a layer
    /// In a list: made for this server's store, so that without a row it is an orphan.
    bool owned = false;
};

/// A snapshot taken apart, for an image made of it.
struct SnapshotContent {
    std::string image_digest;  ///< of the image below it
    /// Each writes one layer as overlayfs reads it to a directory that does not exist, lowest
    /// first. They block.
    std::vector<std::function<Status(const std::filesystem::path& to)>> layers;
};

/// What a backend can do; what it cannot is refused before anything is made, naming the field.
struct Capabilities {
    bool pause = false;
    bool snapshots = false;
    bool snapshot_content = false;  ///< snapshots can be taken apart
    bool forks = false;
    bool pools = false;
    bool hooks = false;
    bool isolation = false;  ///< extension bootstrap.execd.isolation
    bool network_policy = false;
    bool credential_proxy = false;
    bool host_volumes = false;
    bool claim_volumes = false;
    bool bucket_volumes = false;
    bool gpus = false;
    bool fine_limits = false;        ///< those beyond cpu, memory and gpu
    bool networks = false;           ///< extensions opensandbox.io/network, /hostname, /publish
    bool memory_volumes = false;     ///< extension opensandbox.io/tmpfs
    bool foreign_platforms = false;  ///< platforms other than the server's own
    /// Goes on with what a server asked for that died meanwhile.
    bool outlives_requests = false;
};

/// What to make.
struct SandboxSpec {
    std::string id;     ///< UUID
    std::string image;  ///< reference as requested; empty with snapshot
    std::optional<model::RegistryLogin> image_auth;  ///< for this pull only; never stored
    std::optional<SnapshotReference> snapshot;       ///< start from this instead of an image
    std::vector<std::string> entrypoint;             ///< argv, not empty
    model::StringMap env;                            ///< over the image's own
    model::StringMap egress_env;                     ///< OPENSANDBOX_EGRESS_*: for the sidecar only
    ResourceLimits limits;
    model::StringMap resource_requests;       ///< as requested; what a backend can weigh by
    std::optional<model::Platform> platform;  ///< only when it was asked for
    std::vector<model::Volume> volumes;
    std::vector<MemoryVolume> memory_volumes;
    NetworkChoice network;
    std::string tenant;  ///< whose it is; empty where there is one tenant
    std::optional<model::NetworkPolicy> network_policy;
    std::optional<model::LifecycleHooks> hooks;
    bool credential_proxy = false;
    bool credential_bound = false;  ///< credentialProxy.interceptionMode
    bool isolation = false;         ///< extension bootstrap.execd.isolation = enable
    std::string agent_token;        ///< for X-EXECD-ACCESS-TOKEN
    /// What a backend that keeps labels writes there, so that objects explain themselves.
    model::StringMap metadata;
    model::StringMap extensions;  ///< the shown ones
    std::optional<std::int64_t> renew_seconds;
    std::optional<Timestamp> expires_at;
};

/// How a sandbox ended.
struct Exit {
    int code = 0;         ///< exit code; -1 when killed by a signal
    int signal = 0;       ///< the signal, or 0
    std::string reason;   ///< a word for status.reason when the backend knows better: OOM_KILLED…
    std::string message;  ///< a sentence for people
    Timestamp at{};
};

/// What an object's labels say of a sandbox that no row knows: enough to take it over.
struct Adoption {
    model::Sandbox sandbox;
    std::optional<std::int64_t> renew_seconds;
};

/// What the backend has under our label or name, whether or not the store knows of it.
struct Observed {
    std::string id;
    Endpoints endpoints;
    bool paused = false;
    std::optional<Exit> exit;  ///< empty while it runs
    /// Made by another server that left it to us; without it an object without a row is an orphan.
    std::optional<Adoption> adoption;
};

/// A change that nobody asked this server for: somebody paused a container by hand.
enum class Change : std::uint8_t { paused, resumed, removed };

/// Which part of a sandbox's output to show.
struct LogQuery {
    std::int64_t tail = 100;         ///< lines from the end
    std::optional<Timestamp> since;  ///< nothing older
    bool timestamps = true;          ///< RFC 3339 and a blank before every line
};

/// Figures for /metrics.
struct Figures {
    std::uint64_t slots_ready = 0;    ///< slots waiting, blank or with an image mounted
    std::uint64_t slots_mounted = 0;  ///< those with an image mounted among them
    std::uint64_t slots_target = 0;   ///< slots that should wait; follows demand
    std::uint64_t slot_hits = 0;      ///< creates served from one of these
    std::uint64_t slot_misses = 0;    ///< creates that had to make one
    std::uint64_t slot_refills = 0;   ///< times that all blanks were there again
    double slot_refill_seconds = 0;   ///< what these took, in sum
    std::uint64_t warm_ready = 0;     ///< slots waiting with their image and its programs started
    std::uint64_t warm_target = 0;
    std::uint64_t warm_hits = 0;      ///< creates served from one of these
    std::uint64_t warm_misses = 0;    ///< creates that could have been
    std::uint64_t warm_failures = 0;  ///< slots whose programs did not start
    std::uint64_t sandboxes = 0;
    friend bool operator==(const Figures&, const Figures&) = default;
};

/// What one sandbox uses, for /metrics.
struct SandboxUsage {
    std::string id;
    Usage usage;
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
    virtual Awaitable<Result<Endpoints>> create(SandboxSpec spec) = 0;
    /// "sha256:…" of the manifest that the image of a sandbox made by create() was; empty where
    /// that is not known or not one, and for snapshots.
    [[nodiscard]] virtual std::string image_digest(const std::string& /*id*/) const { return {}; }
    /// "all" or "credential-bound": which connections of a sandbox made by create() what enforces
    /// its policy intercepts, now that it is in force; empty for none.
    [[nodiscard]] virtual std::string interception_mode(const std::string& /*id*/) const {
        return {};
    }
    /// Ends it and removes all it had; succeeds when there is nothing. Returns when nothing is
    /// left.
    virtual Awaitable<Status> destroy(std::string id) = 0;
    /// Everything that exists, for recovery at start.
    virtual Awaitable<Result<std::vector<Observed>>> list() = 0;
    /// Called on the event loop when a sandbox ends by itself.
    virtual void on_exit(std::function<void(const std::string& id, const Exit&)> listener) = 0;
    /// Called on the event loop when somebody else changed a sandbox. For backends that see it.
    virtual void on_change(std::function<void(const std::string& id, Change)> /*listener*/) {}
    /// The host was restarted since this backend last ran on it: what start() did not find again
    /// ended with it.
    [[nodiscard]] virtual bool host_restarted() const { return false; }
    [[nodiscard]] virtual Figures figures() const = 0;
    /// What sandboxes use, of at most `limit` of them. Empty where the backend does not measure.
    virtual Awaitable<Result<std::vector<SandboxUsage>>> usage(std::size_t limit);
    [[nodiscard]] virtual Capabilities capabilities() const { return {}; }

    // What not every backend can do: `unsupported` unless its capability is set.

    /// Stops every process of it where it is; sidecars, too. Undone on failure.
    virtual Awaitable<Status> pause(std::string id);
    virtual Awaitable<Status> resume(std::string id);
    /// Keeps the file system of a running sandbox, consistent, as `snapshot_id`. Returns the
    /// backend's reference. On failure nothing is left of it.
    virtual Awaitable<Result<SnapshotReference>> snapshot(std::string sandbox_id,
                                                          std::string snapshot_id);
    /// Succeeds when there is none; `conflict` while something is made from it.
    virtual Awaitable<Status> remove_snapshot(SnapshotReference snapshot);
    /// Every whole snapshot that exists, for recovery at start.
    virtual Awaitable<Result<std::vector<SnapshotReference>>> list_snapshots();
    /// What it consists of, while nobody removes it. `conflict` when it cannot stand without this
    /// host.
    virtual Awaitable<Result<SnapshotContent>> open_snapshot(SnapshotReference snapshot);
    /// Keeps the file system of a sandbox that runs or is paused, consistent, for copies of it:
    /// SandboxSpec::snapshot with what it returns starts one, with the environment and limits of
    /// the first. No snapshot: list_snapshots() does not show it, and it does not outlive this
    /// server. remove_snapshot() lets go of it; it is gone when the last copy is.
    virtual Awaitable<Result<SnapshotReference>> fork(std::string sandbox_id, std::string fork_id);
    /// What the entrypoint wrote, oldest first, at most about 1 MiB.
    virtual Awaitable<Result<std::string>> logs(std::string id, LogQuery query);
    /// How the backend sees it, for operators.
    virtual Awaitable<Result<Inspection>> inspect(std::string id);
    /// Lets go; sandboxes live on.
    virtual Awaitable<void> stop() = 0;
};

}  // namespace opensandbox::runtime
