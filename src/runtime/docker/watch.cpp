#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "net/task.hpp"
#include "runtime/docker/core.hpp"
#include "runtime/docker/names.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::chrono::milliseconds kFirstWatchRetry{50};
constexpr std::chrono::milliseconds kLongestWatchRetry{2000};

Known::State state_of(const ContainerState& state) {
    if (state.paused) return Known::State::paused;
    return state.running || state.restarting ? Known::State::running : Known::State::ended;
}

}  // namespace

Awaitable<Result<std::unique_ptr<EventStream>>> DockerRuntime::open_watch() {
    EventFilter filter;
    filter.types = {"container"};
    filter.actions = {"start", "die", "pause", "unpause", "destroy"};
    // Not by label: sandboxes and their sidecars have none in common.
    co_return co_await engine_.watch_events(std::move(filter));
}

/// Follows the engine's events for as long as the server lives, across the engine's own restarts.
Awaitable<void> DockerRuntime::watch(std::unique_ptr<EventStream> stream) {
    auto wait = kFirstWatchRetry;
    while (!stopping_) {
        if (stream) {
            stream_ = stream.get();
            ScopeExit forget([this] { stream_ = nullptr; });
            auto event = co_await stream->next();
            if (event) {
                handle(*event);
                continue;
            }
            if (stopping_) co_return;
            log::warn("lost the Docker engine's events", {{"error", event.error().message()}});
        }
        stream.reset();
        co_await net::sleep_for(wait);
        auto again = co_await open_watch();
        if (!again) {
            wait = std::min(wait * 2, kLongestWatchRetry);
            continue;
        }
        wait = kFirstWatchRetry;
        stream = std::move(*again);
        log::info("the Docker engine is back");
        spawn(reconcile(), "compare with the Docker engine");
    }
}

void DockerRuntime::handle(const EngineEvent& event) {
    if (auto guarded = event.attribute(label::kSidecarFor)) {
        handle_sidecar(*guarded, event);
        return;
    }
    std::string id = event.attribute(label::kId).value_or("");
    Known* entry = known(id);
    if (!entry || entry->destroying) return;
    if (entry->container.empty() || entry->container != event.actor_id) return;
    if (event.action == "die") entry->state = Known::State::ended;
    if (event.action == "start" && entry->creating) return;
    if (entry->operations > 0) {
        entry->missed_events = true;
    } else {
        spawn(look_at(id), "look at a container");
    }
}

/// Tells what became of a container that changed by itself or by somebody's hand.
Awaitable<void> DockerRuntime::look_at(std::string id) {
    auto info = co_await engine_.inspect_container(container_of(id));
    Known* entry = known(id);
    if (!entry || entry->destroying) co_return;
    if (info) {
        note(id, *info);
    } else if (info.error().code() == ErrorCode::not_found && !entry->creating) {
        entry->state = Known::State::ended;
        if (on_change_) on_change_(id, Change::removed);
    }
}

void DockerRuntime::note(const std::string& id, const ContainerInfo& info) {
    Known* entry = known(id);
    if (!entry || entry->operations > 0) return;
    Known::State before = entry->state;
    Known::State state = state_of(info.state);
    entry->state = state;
    if (state == Known::State::ended) {
        Exit exit = exit_of(info.state);
        if (entry->cut_off) exit = exit_without_sidecar(exit.at);
        if (on_exit_) on_exit_(id, exit);
    } else if (state == Known::State::paused) {
        if (on_change_ && before != state) on_change_(id, Change::paused);
    } else if (on_change_ && before != state && !entry->creating) {
        on_change_(id, Change::resumed);
    }
}

/// After the engine was away: what changed meanwhile is told, what nobody knows of is removed.
Awaitable<void> DockerRuntime::reconcile() {
    ContainerFilter filter;
    filter.labels.emplace_back(label::kId);
    auto containers = co_await engine_.list_containers(std::move(filter));
    if (!containers) co_return;  // it is away again: the watch will see
    std::vector<std::string> changed;
    for (const auto& [id, entry] : known_) {
        if (!entry.creating && !entry.destroying) changed.push_back(id);
    }
    for (const std::string& id : changed) {
        co_await look_at(id);
        const Known* entry = known(id);
        if (!entry || !entry->sidecar || entry->state == Known::State::ended) continue;
        auto guarded = co_await is_guarded(id, container_of(id));
        if (guarded && !*guarded) co_await cut_off(id);
    }
    for (const ContainerSummary& container : *containers) {
        LabelledSandbox labelled = read_labels(container.labels);
        if (labelled.id.empty() || labelled.server != server_id_) continue;
        if (known_.contains(labelled.id) || remains_.contains(labelled.id)) continue;
        log::warn("removing a container that nobody asked for any more",
                  {{"sandbox", labelled.id}, {"container", container.id}});
        auto removed = co_await destroy(labelled.id);
        if (!removed) {
            log::error("cannot remove an orphan",
                       {{"sandbox", labelled.id}, {"error", removed.error().message()}});
        }
    }
    agent_.doubt();
}

}  // namespace opensandbox::runtime::docker
