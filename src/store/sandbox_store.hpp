#pragma once

#include "base/error.hpp"
#include "model/endpoints.hpp"
#include "model/sandbox.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::store {

/// One sandbox as the store keeps it: what the API shows and how to reach its agent.
struct SandboxRecord {
    SandboxRecord() = default;
    model::Sandbox sandbox;
    model::Endpoints endpoints;
    std::string agent_token;
    std::string tenant;                         ///< whose it is; empty where there is one tenant
    std::optional<std::int64_t> renew_seconds;  ///< extension access.renew.extend.seconds
};

/// One Idempotency-Key and what it made.
struct KeyRecord {
    KeyRecord() = default;
    KeyRecord(std::string k, std::string d, std::string s, Timestamp at)
        : key(std::move(k)), body_digest(std::move(d)), sandbox_id(std::move(s)), created_at(at) {}
    std::string key;
    std::string body_digest;  ///< SHA-256 of the request body, hex
    std::string sandbox_id;
    Timestamp created_at{};
};

/// Everything the server must not forget. Functions block; thread-safe.
class SandboxStore {
  public:
    /// Opens the file and brings its schema up to date. Refuses a file of a newer version.
    static Result<std::unique_ptr<SandboxStore>> open(const std::filesystem::path& file);
    ~SandboxStore();
    SandboxStore(const SandboxStore&) = delete;
    SandboxStore& operator=(const SandboxStore&) = delete;

    Result<std::vector<SandboxRecord>> load_sandboxes();
    Result<std::vector<KeyRecord>> load_keys();

    /// Both or neither.
    Status insert(const SandboxRecord& record, const std::optional<KeyRecord>& key);
    /// After the runtime made it: state and agent.
    Status set_running(const SandboxRecord& record);
    Status set_status(const std::string& id, const model::SandboxStatus& status);
    Status set_expiry(const std::string& id, std::optional<Timestamp> expires_at);
    Status set_metadata(const std::string& id, const model::StringMap& metadata);
    /// Succeeds when there is no such row. Keys stay, so that a repeated request is recognised.
    Status remove(const std::string& id);
    /// Removes a sandbox that never came to be, with its key.
    Status undo_insert(const std::string& id);
    /// Forgets keys made before `limit`.
    Status remove_keys_before(Timestamp limit);

  private:
    struct State;
    explicit SandboxStore(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace opensandbox::store
