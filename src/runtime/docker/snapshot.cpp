#include "base/log.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/operation.hpp"
#include "runtime/docker/remembered_egress.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::size_t kMaxPolicy = 16 * 1024 * 1024;
constexpr int kOk = 200;

Awaitable<Result<std::string>> ask_policy(http::Client& client, model::AgentAddress address,
                                          std::string token) {
    http::Fields fields{{"OPENSANDBOX-EGRESS-AUTH", std::move(token)}, {"Connection", "close"}};
    http::ClientRequest request("GET", "/policy", std::move(fields));
    http::Origin origin(address.host, address.port);
    auto answer = co_await client.send(origin, std::move(request));
    if (!answer) co_return answer.error();
    const int status = (*answer)->head().status;
    auto text = co_await http::read_all((*answer)->body(), kMaxPolicy);
    if (!text) co_return text.error();
    if (status != kOk) {
        co_return Error(ErrorCode::bad_gateway, "it answered " + std::to_string(status));
    }
    co_return std::move(*text);
}

}  // namespace

/// For the label of its snapshot's image; empty when nothing guards it.
Awaitable<Result<std::string>> DockerRuntime::egress_of(std::string id, StringMap labels) {
    const LabelledSandbox labelled = read_labels(labels);
    if (labelled.egress_token.empty()) co_return std::string();
    auto info = co_await engine_.inspect_container(sidecar_name(id));
    if (!info) co_return info.error().within("egress sidecar");
    model::AgentAddress address(proxy_host(), labelled.egress_port);
    auto answer = co_await ask_policy(probes_, std::move(address), labelled.egress_token);
    if (!answer) co_return answer.error().within("egress sidecar");
    const auto at =
        std::ranges::find(info->labels, label::kEgressRequest, &StringMap::value_type::first);
    co_return remember_egress(at == info->labels.end() ? "" : at->second, *answer);
}

/// The image carries none of what belongs to this one sandbox: no reserved label, no token.
Awaitable<Result<SnapshotReference>> DockerRuntime::snapshot(std::string id,
                                                             std::string snapshot_id) {
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
    // Last, so that none of the lines before blanks it.
    auto egress = co_await egress_of(id, info->labels);
    if (!egress) co_return egress.error();
    if (!egress->empty()) {
        commit.changes.push_back(label_instruction(label::kSnapshotEgress, *egress));
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

/// What starts from a snapshot is guarded as its source was then, unless its request says how.
Status DockerRuntime::inherit_policy(const ImageInfo& image, SandboxSpec& spec) const {
    if (!spec.snapshot || spec.network_policy) return {};
    const auto at =
        std::ranges::find(image.labels, label::kSnapshotEgress, &StringMap::value_type::first);
    if (at == image.labels.end() || at->second.empty()) return {};
    if (auto alike = guard_alike(at->second, spec); !alike) {
        return failure("SANDBOX_START_FAILED", alike.error().message());
    }
    return check_policy(spec);
}

Awaitable<Status> DockerRuntime::remove_snapshot(SnapshotReference snapshot) {
    std::string image = std::move(snapshot.data);
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
