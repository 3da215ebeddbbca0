#include "base/log.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/operation.hpp"

namespace opensandbox::runtime::docker {

Awaitable<Status> DockerRuntime::pause(std::string id) {
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

Awaitable<Status> DockerRuntime::resume(std::string id) {
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

}  // namespace opensandbox::runtime::docker
