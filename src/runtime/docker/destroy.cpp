#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::chrono::seconds kSidecarGrace{9};
/// What a create whose answer was lost may still bring to life is looked for this long.
constexpr std::chrono::minutes kDoubt{10};
constexpr std::chrono::milliseconds kFirstRetry{500};
constexpr std::chrono::milliseconds kLongestRetry{30'000};

}  // namespace

Awaitable<Status> DockerRuntime::destroy(std::string id) {
    bool unknown = known(id) == nullptr;
    auto found = co_await find_objects(id);
    if (!found) co_return found.error();
    if (Known* entry = known(id)) entry->destroying = true;
    auto removed = co_await remove_objects(id, *found);
    if (!removed) {
        if (Known* entry = known(id)) entry->destroying = false;
        co_return removed;
    }
    known_.erase(id);
    if (unknown) {
        // A server that died may have asked for it, and the engine not be done.
        found->bucket_mounts.clear();
        leave_remains(id, std::move(*found));
    }
    co_return removed;
}

/// From memory, else from the container's labels; by the published server's rule a name first, then
/// the label.
Awaitable<Result<Known>> DockerRuntime::find_objects(std::string id) {
    if (const Known* entry = known(id)) co_return *entry;
    Known found;
    found.sidecar = true;
    found.runtime_volume = true;
    ContainerFilter filter;
    filter.labels.push_back(std::string(label::kId) + "=" + id);
    auto containers = co_await engine_.list_containers(std::move(filter));
    if (!containers) co_return containers.error();
    for (const ContainerSummary& container : *containers) {
        LabelledSandbox labelled = read_labels(container.labels);
        if (!labelled.server.empty() && labelled.server != server_id_) continue;
        found.container = container.id;
        found.managed_volumes = labelled.managed_volumes;
        found.bucket_mounts = labelled.bucket_mounts;
    }
    co_return found;
}

/// In the contract's order (lifecycle 6.6). Goes on after a failure and returns the first.
Awaitable<Status> DockerRuntime::remove_objects(std::string id, Known objects) {
    Status first;
    auto keep = [&first](const Status& status) {
        if (!status && first) first = status;
    };
    std::string container = objects.container.empty() ? container_name(id) : objects.container;
    auto removed = co_await engine_.remove_container(container, true, true);
    keep(removed);
    if (objects.sidecar) {
        std::string sidecar = sidecar_name(id);
        auto stopped = co_await engine_.stop_container(sidecar, kSidecarGrace);
        if (!stopped && stopped.error().code() != ErrorCode::not_found) keep(stopped);
        removed = co_await engine_.remove_container(sidecar, true, true);
        keep(removed);
    }
    if (objects.runtime_volume) {
        removed = co_await engine_.remove_volume(runtime_volume_name(id));
        keep(removed);
    }
    for (const std::string& path : objects.bucket_mounts) {
        auto released = co_await buckets_.release(path);
        keep(released);
    }
    for (const std::string& name : objects.managed_volumes) {
        auto volume = co_await engine_.inspect_volume(name);
        if (!volume && volume.error().code() == ErrorCode::not_found) continue;
        if (!volume) {
            keep(volume.error());
            continue;
        }
        std::pair<std::string, std::string> ours(label::kVolumeManagedBy, "server");
        if (std::ranges::find(volume->labels, ours) == volume->labels.end()) continue;
        removed = co_await engine_.remove_volume(name);
        // Another sandbox uses it by now: it is theirs.
        if (!removed && removed.error().code() == ErrorCode::conflict) continue;
        keep(removed);
    }
    co_return first;
}

void DockerRuntime::leave_remains(const std::string& id, Known known) {
    Remains& entry = remains_[id];
    entry.known = std::move(known);
    entry.until = std::chrono::steady_clock::now() + kDoubt;
    if (clearing_) return;
    clearing_ = true;
    spawn(clear_remains(), "clear what is left of creates");
}

Awaitable<void> DockerRuntime::clear_remains() {
    auto wait = kFirstRetry;
    while (!remains_.empty() && !stopping_) {
        co_await net::sleep_for(wait);
        wait = std::min(wait * 2, kLongestRetry);
        std::vector<std::string> ids;
        for (const auto& [id, entry] : remains_)
            ids.push_back(id);
        for (const std::string& id : ids) {
            Known objects = remains_[id].known;
            auto removed = co_await remove_objects(id, objects);
            if (!removed) continue;
            // Counted once: a second release would end somebody else's use.
            remains_[id].known.bucket_mounts.clear();
            if (std::chrono::steady_clock::now() >= remains_[id].until) remains_.erase(id);
        }
    }
    clearing_ = false;
}

}  // namespace opensandbox::runtime::docker
