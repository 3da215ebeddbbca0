#pragma once

#include "base/error.hpp"
#include "model/endpoints.hpp"
#include "model/sandbox.hpp"
#include "store/pool_store.hpp"
#include "store/snapshot_store.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::store {

/// One sandbox as the store keeps it: what the API shows and how to reach its agent.
struct SandboxRecord {
    model::Sandbox sandbox;
    model::Endpoints endpoints;
    std::string agent_token;
    std::string tenant;                         ///< whose it is; empty where there is one tenant
    std::optional<std::int64_t> renew_seconds;  ///< extension access.renew.extend.seconds
    std::string base_image;                     ///< the image below it, also through snapshots
    std::int64_t cpu_millicores = 0;            ///< limits, for quotas; 0: the backend's default
    std::int64_t memory_bytes = 0;
    bool pool_idle = false;  ///< waits in its pool: nobody's yet, not listed
};

/// One Idempotency-Key and what it made.
struct KeyRecord {
    std::string key;
    std::string body_digest;  ///< SHA-256 of the request body, hex
    std::string sandbox_id;
    Timestamp created_at{};
};

/// Everything the server must not forget. Functions block; thread-safe. A write that fails wrote
/// nothing; `unavailable` when another program holds the file or its disk is full.
class SandboxStore {
  public:
    /// Opens the file and brings its schema up to date. Refuses a file of a newer version, and one
    /// that another server has open (`conflict`).
    static Result<std::unique_ptr<SandboxStore>> open(
        const std::filesystem::path& file,
        std::chrono::milliseconds patience = Connection::kPatience);
    ~SandboxStore();
    SandboxStore(const SandboxStore&) = delete;
    SandboxStore& operator=(const SandboxStore&) = delete;

    Result<std::vector<SandboxRecord>> load_sandboxes();
    Result<std::vector<KeyRecord>> load_keys();

    /// Both or neither.
    Status insert(const SandboxRecord& record, const std::optional<KeyRecord>& key);
    /// All or none.
    Status insert_all(const std::vector<SandboxRecord>& records);
    /// The whole row anew, with the key or neither: an idle sandbox of a pool becomes somebody's.
    Status replace(const SandboxRecord& record, const std::optional<KeyRecord>& key);
    /// After the runtime made it: state and how it is reached.
    Status set_running(const SandboxRecord& record);
    /// All or none.
    Status set_all_running(const std::vector<SandboxRecord>& records);
    Status set_status(const std::string& id, const model::SandboxStatus& status);
    Status set_expiry(const std::string& id, std::optional<Timestamp> expires_at);
    Status set_metadata(const std::string& id, const model::StringMap& metadata);
    /// Succeeds when there is no such row. Keys stay, so that a repeated request is recognised.
    Status remove(const std::string& id);
    /// Removes a sandbox that never came to be, with its key.
    Status undo_insert(const std::string& id);
    /// All or none.
    Status undo_inserts(const std::vector<std::string>& ids);
    /// Forgets keys made before `limit`.
    Status remove_keys_before(Timestamp limit);

    /// Other tables of the same file.
    SnapshotStore& snapshots();
    PoolStore& pools();

  private:
    struct State;
    explicit SandboxStore(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace opensandbox::store
