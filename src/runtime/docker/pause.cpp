#include "base/log.hpp"
#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

bool is_gone(const Error& error) {
    return error.code() == ErrorCode::not_found;
}

}  // namespace

/// While it lives, events of this sandbox are taken as ours; afterwards what came meanwhile is
/// looked at.
class DockerRuntime::Operation {
  public:
    Operation(DockerRuntime& runtime, std::string id) : runtime_(runtime), id_(std::move(id)) {
        if (Known* entry = runtime_.known(id_)) ++entry->operations;
    }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    ~Operation() {
        Known* entry = runtime_.known(id_);
        if (!entry || entry->operations == 0 || --entry->operations > 0) return;
        if (entry->missed_events) runtime_.spawn(runtime_.look_at(id_), "look at a container");
        entry->missed_events = false;
    }
    void now_in(Known::State state) {
        if (Known* entry = runtime_.known(id_)) entry->state = state;
    }

  private:
    DockerRuntime& runtime_;
    std::string id_;
};

Awaitable<Status> DockerRuntime::pause(const std::string& sandbox) {
    std::string id = sandbox;
    Operation operation(*this, id);
    std::string container = container_of(id);
    auto paused = co_await engine_.pause_container(container);
    if (!paused) {
        if (is_gone(paused.error())) co_return not_found(id);
        co_return failure("SANDBOX_PAUSE_FAILED", paused.error().message());
    }
    const Known* entry = known(id);
    if (entry && entry->sidecar) {
        auto guarded = co_await engine_.pause_container(sidecar_name(id));
        if (!guarded) {
            auto back = co_await engine_.unpause_container(container);
            if (!back) {
                log::error("cannot undo a pause",
                           {{"sandbox", id}, {"error", back.error().message()}});
            }
            co_return failure("SANDBOX_PAUSE_FAILED",
                              "egress sidecar: " + guarded.error().message());
        }
    }
    operation.now_in(Known::State::paused);
    co_return Status();
}

Awaitable<Status> DockerRuntime::resume(const std::string& sandbox) {
    std::string id = sandbox;
    Operation operation(*this, id);
    std::string container = container_of(id);
    const Known* entry = known(id);
    bool sidecar = entry && entry->sidecar;
    bool sidecar_resumed = false;
    if (sidecar) {
        auto guarded = co_await engine_.unpause_container(sidecar_name(id));
        sidecar_resumed = guarded.has_value();
        // One that was never paused guards all the same.
        if (!guarded && guarded.error().code() != ErrorCode::conflict) {
            co_return failure("SANDBOX_RESUME_FAILED",
                              "egress sidecar: " + guarded.error().message());
        }
    }
    auto resumed = co_await engine_.unpause_container(container);
    if (!resumed) {
        if (sidecar_resumed) {
            auto back = co_await engine_.pause_container(sidecar_name(id));
            if (!back) {
                log::error("cannot undo a resume",
                           {{"sandbox", id}, {"error", back.error().message()}});
            }
        }
        if (is_gone(resumed.error())) co_return not_found(id);
        co_return failure("SANDBOX_RESUME_FAILED", resumed.error().message());
    }
    operation.now_in(Known::State::running);
    co_return Status();
}

/// The image carries none of what belongs to this one sandbox: no reserved label, no token.
Awaitable<Result<SnapshotReference>> DockerRuntime::snapshot(const std::string& sandbox,
                                                             const std::string& snapshot) {
    std::string id = sandbox;
    std::string snapshot_id = snapshot;
    Operation operation(*this, id);
    auto info = co_await engine_.inspect_container(container_of(id));
    if (!info && is_gone(info.error())) co_return not_found(id);
    if (!info) co_return info.error();
    CommitRequest commit(info->id, std::string(kSnapshotRepository), snapshot_id);
    commit.comment = "snapshot of sandbox " + id;
    commit.pause = !info->state.paused;
    for (const auto& [key, value] : info->labels) {
        if (key.starts_with(kLabelPrefix)) commit.changes.push_back("LABEL " + key + "=\"\"");
    }
    commit.changes.push_back("LABEL " + std::string(label::kSnapshotServer) + "=" + server_id_);
    commit.changes.push_back("ENV " + std::string(kAgentTokenVariable) + "=\"\"");
    // A sandbox made of it need not have a sidecar, and would wait for its certificate.
    bool transparent = std::ranges::any_of(info->env, [](const std::string& entry) {
        return entry.starts_with(std::string(kTransparentVariable) + "=");
    });
    if (transparent) {
        commit.changes.push_back("ENV " + std::string(kTransparentVariable) + "=\"\"");
    }
    SnapshotReference reference(snapshot_id, std::string(kSnapshotRepository) + ":" + snapshot_id);
    auto committed = co_await engine_.commit(std::move(commit));
    if (!committed) {
        // The engine may have gone on without us.
        auto removed = co_await engine_.remove_image(reference.data, true);
        if (!removed) {
            log::warn("cannot remove what a failed commit left",
                      {{"snapshot", snapshot_id}, {"error", removed.error().message()}});
        }
        co_return committed.error();
    }
    co_return reference;
}

Awaitable<Status> DockerRuntime::remove_snapshot(const SnapshotReference& snapshot) {
    std::string image = snapshot.data;
    if (image.empty()) image = std::string(kSnapshotRepository) + ":" + snapshot.id;
    auto removed = co_await engine_.remove_image(std::move(image));
    if (!removed && removed.error().code() == ErrorCode::conflict) {
        co_return removed.error().as("SNAPSHOT::DELETE_CONFLICT");
    }
    co_return removed;
}

/// Those that this server took: others may share the engine.
Awaitable<Result<std::vector<SnapshotReference>>> DockerRuntime::list_snapshots() {
    std::vector<std::string> references{std::string(kSnapshotRepository)};
    auto images = co_await engine_.list_images(std::move(references));
    if (!images) co_return images.error();
    std::string prefix = std::string(kSnapshotRepository) + ":";
    std::vector<SnapshotReference> snapshots;
    for (const ImageSummary& image : *images) {
        std::pair<std::string, std::string> ours(label::kSnapshotServer, server_id_);
        if (std::ranges::find(image.labels, ours) == image.labels.end()) continue;
        for (const std::string& tag : image.repo_tags) {
            // Podman puts its own registry's name in front.
            std::size_t at = tag.find(prefix);
            if (at == std::string::npos) continue;
            snapshots.emplace_back(tag.substr(at + prefix.size()), tag.substr(at));
            snapshots.back().owned = true;
        }
    }
    co_return snapshots;
}

}  // namespace opensandbox::runtime::docker
