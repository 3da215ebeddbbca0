#pragma once

#include "base/clock.hpp"
#include "model/json_text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::model {

/// Public states of a sandbox (lifecycle 2.3).
enum class SandboxState : std::uint8_t {
    pending,
    running,
    pausing,
    paused,
    resuming,
    stopping,
    terminated,
    failed,
};

/// "Pending", "Running"…
std::string_view to_string(SandboxState state);
/// Case is ignored.
std::optional<SandboxState> parse_state(std::string_view text);
/// Whether the sandbox's processes are there.
bool is_alive(SandboxState state);

/// Where a sandbox is in its life, and why.
struct SandboxStatus {
    SandboxState state = SandboxState::pending;
    std::string reason;
    std::string message;
    Timestamp last_transition_at{};
};

/// Operating system and processor that a request asked for.
struct Platform {
    std::string os;
    std::string arch;
};

/// One sandbox as the API shows it (lifecycle 2.2).
struct Sandbox {
    std::string id;
    std::string image_uri;  ///< empty when restored from a snapshot
    /// "sha256:…" of the manifest that the image's reference meant when it was created; empty where
    /// that is not known, and for what came out of a pool or a snapshot.
    std::string image_digest;
    /// What the runtime confirmed: "all" or "credential-bound"; empty where nothing is intercepted.
    std::string interception_mode;
    std::string snapshot_id;  ///< empty unless restored from one
    std::optional<Platform> platform;
    SandboxStatus status;
    std::optional<StringMap>
        metadata;          ///< as created or patched; empty and absent differ in create
    StringMap extensions;  ///< only the keys that are shown
    std::string pool;      ///< name of the pool it was taken from; empty otherwise
    std::vector<std::string> entrypoint;
    std::optional<Timestamp> expires_at;  ///< empty: removed by hand only
    Timestamp created_at{};
};

/// The body of GET, PATCH and of the items of a list. Holds no nulls.
std::string to_json(const Sandbox& sandbox);

/// The body of the answer to create: no image; `metadata` even when it is empty but was given.
std::string to_create_json(const Sandbox& sandbox);

}  // namespace opensandbox::model
