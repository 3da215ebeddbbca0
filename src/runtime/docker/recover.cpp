#include "base/log.hpp"
#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"

#include <algorithm>
#include <csignal>

namespace opensandbox::runtime::docker {
namespace {

model::Sandbox adopted_sandbox(const LabelledSandbox& labelled, const ContainerInfo& info,
                               const StringMap& image_labels) {
    model::Sandbox sandbox;
    sandbox.id = labelled.id;
    sandbox.snapshot_id = labelled.snapshot_id;
    if (labelled.snapshot_id.empty()) sandbox.image_uri = info.image;
    sandbox.platform = labelled.platform;
    sandbox.extensions = labelled.extensions;
    sandbox.entrypoint = info.cmd;
    sandbox.expires_at = labelled.expires_at;
    sandbox.created_at = info.created_at.value_or(now());
    model::StringMap metadata;
    for (const auto& entry : labelled.metadata) {
        // What the image itself says is nobody's metadata (lifecycle 12).
        if (std::ranges::find(image_labels, entry) == image_labels.end()) metadata.push_back(entry);
    }
    sandbox.metadata = std::move(metadata);
    return sandbox;
}

Known known_of(const LabelledSandbox& labelled, const ContainerSummary& container) {
    Known known;
    known.container = container.id;
    known.sidecar = !labelled.egress_token.empty();
    known.runtime_volume = known.sidecar;
    known.managed_volumes = labelled.managed_volumes;
    known.bucket_mounts = labelled.bucket_mounts;
    if (container.state == "paused") known.state = Known::State::paused;
    if (container.state == "exited" || container.state == "dead") {
        known.state = Known::State::ended;
    }
    return known;
}

}  // namespace

Exit exit_of(const ContainerState& state) {
    constexpr std::int64_t kSignalBase = 128;
    constexpr std::int64_t kLastSignal = 64;
    Exit exit;
    exit.code = static_cast<int>(state.exit_code);
    if (state.exit_code > kSignalBase && state.exit_code <= kSignalBase + kLastSignal) {
        exit.signal = static_cast<int>(state.exit_code - kSignalBase);
    }
    exit.at = state.finished_at.value_or(now());
    if (state.oom_killed) {
        exit.reason = "OOM_KILLED";
        exit.message = "Sandbox container ran out of memory and was killed.";
    } else if (!state.error.empty()) {
        exit.message = state.error;
    }
    return exit;
}

Exit exit_without_sidecar(Timestamp at) {
    Exit exit;
    exit.code = -1;
    exit.signal = SIGKILL;
    exit.at = at;
    exit.reason = "EGRESS_SIDECAR_LOST";
    exit.message =
        "The sandbox's egress sidecar ended, and with it the sandbox's network; the sandbox was "
        "ended.";
    return exit;
}

Awaitable<Result<std::vector<Observed>>> DockerRuntime::list() {
    ContainerFilter filter;
    filter.labels.emplace_back(label::kId);
    auto containers = co_await engine_.list_containers(std::move(filter));
    if (!containers) co_return containers.error();
    std::vector<Observed> all;
    for (ContainerSummary& container : *containers) {
        auto observed = co_await observe(std::move(container));
        if (!observed) co_return observed.error();
        if (*observed) all.push_back(std::move(**observed));
    }
    co_await remove_stray_sidecars();
    co_return all;
}

/// Empty for what is none of our business.
Awaitable<Result<std::optional<Observed>>> DockerRuntime::observe(ContainerSummary container) {
    std::optional<Observed> none;
    LabelledSandbox labelled = read_labels(container.labels);
    if (labelled.id.empty()) co_return none;
    if (!labelled.server.empty() && labelled.server != server_id_) co_return none;
    bool published = labelled.server.empty();
    if (published && !labelled.expires_at && !labelled.manual_cleanup) {
        log::warn("a container with our labels has neither expiry nor manual cleanup: left alone",
                  {{"container", container.id}, {"sandbox", labelled.id}});
        co_return none;
    }
    Known entry = known_of(labelled, container);
    Observed observed;
    observed.id = labelled.id;
    observed.paused = entry.state == Known::State::paused;
    bool never_started = container.state == "created";
    std::optional<ContainerInfo> info;
    if (published || never_started || entry.state == Known::State::ended) {
        auto inspected = co_await engine_.inspect_container(container.id);
        if (!inspected && inspected.error().code() == ErrorCode::not_found) co_return none;
        if (!inspected) co_return inspected.error();
        info = std::move(*inspected);
        if (!info->state.running) observed.exit = exit_of(info->state);
    }
    observed.endpoints =
        endpoints(labelled.agent_port, labelled.http_port, internal_host(container.networks, ""));
    guard(observed.endpoints, labelled.egress_token, labelled.egress_port);
    if (published) {
        StringMap image_labels;
        auto image = co_await engine_.inspect_image(container.image_id);
        if (image) image_labels = image->labels;
        Adoption adoption;
        adoption.sandbox = adopted_sandbox(labelled, *info, image_labels);
        adoption.renew_seconds = labelled.renew_seconds;
        observed.adoption = std::move(adoption);
    }
    for (const std::string& path : entry.bucket_mounts)
        buckets_.restore(path);
    bool guarded = true;
    if (entry.sidecar && !observed.exit) {
        auto looked = co_await is_guarded(labelled.id, container.id);
        if (!looked) co_return looked.error();
        guarded = *looked;
    }
    known_[labelled.id] = std::move(entry);
    if (!guarded) {
        observed.exit = exit_without_sidecar(now());
        spawn(cut_off(labelled.id), "end a sandbox without its sidecar");
    }
    std::optional<Observed> found(std::move(observed));
    co_return found;
}

/// Sidecars of ours whose sandbox is gone.
Awaitable<void> DockerRuntime::remove_stray_sidecars() {
    ContainerFilter filter;
    filter.labels.emplace_back(label::kSidecarFor);
    auto sidecars = co_await engine_.list_containers(std::move(filter));
    if (!sidecars) co_return;
    for (const ContainerSummary& sidecar : *sidecars) {
        if (sidecar.label(label::kServer).value_or("") != server_id_) continue;
        std::string id = sidecar.label(label::kSidecarFor).value_or("");
        if (id.empty() || known_.contains(id) || remains_.contains(id)) continue;
        log::warn("removing a sidecar without its sandbox", {{"sandbox", id}});
        Known remains;
        remains.sidecar = true;
        remains.runtime_volume = true;
        auto removed = co_await remove_objects(id, std::move(remains));
        if (!removed) {
            log::error("cannot remove a sidecar",
                       {{"sandbox", id}, {"error", removed.error().message()}});
        }
    }
}

}  // namespace opensandbox::runtime::docker
