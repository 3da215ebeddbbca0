#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/host/host_lifecycle.hpp"
#include "lifecycle/transition.hpp"

namespace opensandbox::lifecycle {
namespace {

using model::SandboxState;

Error failed(const Error& error, const std::string& code, const std::string& id) {
    return {ErrorCode::internal, code, "Sandbox " + id + ": " + error.message()};
}

Error unsupported() {
    return {ErrorCode::unsupported, "SANDBOX::API_NOT_SUPPORTED",
            "The runtime of this server cannot pause sandboxes."};
}

}  // namespace

/// Row, then memory.
Awaitable<Status> HostLifecycle::set_status(std::string id, model::SandboxStatus status) {
    Change change = [id, status](store::SandboxStore& store) {
        return store.set_status(id, status);
    };
    auto committed = co_await commit(std::move(change));
    if (!committed) co_return committed;
    index_.update(id, [&](store::SandboxRecord& record) { record.sandbox.status = status; });
    co_return Status();
}

Awaitable<Status> HostLifecycle::pause(std::string id) {
    return turn_over(std::move(id), true);
}

Awaitable<Status> HostLifecycle::resume(std::string id) {
    return turn_over(std::move(id), false);
}

Awaitable<Status> HostLifecycle::turn_over(std::string id, bool to_paused) {
    ++busy_;
    ScopeExit idle([this] { --busy_; });
    auto hold = co_await holds_.lock(id);
    auto turn = co_await turns_.lock(id);
    const auto* entry = index_.find(id);
    if (!entry) co_return not_found(id);
    if (!runtime_.capabilities().pause) co_return unsupported();
    model::SandboxStatus before = entry->record.sandbox.status;
    SandboxState wanted = to_paused ? SandboxState::running : SandboxState::paused;
    if (before.state != wanted) {
        co_return Error(ErrorCode::conflict,
                        error_code(to_paused ? "SANDBOX_NOT_RUNNING" : "SANDBOX_NOT_PAUSED"),
                        "Sandbox " + id + " is " + std::string(model::to_string(before.state)) +
                            ", not " + std::string(model::to_string(wanted)) + ".");
    }
    co_return co_await change_over(std::move(id), std::move(before), to_paused);
}

/// Between Running and Paused, with its turn held. The row says first what is tried; recovery asks
/// the runtime what came of it.
Awaitable<Status> HostLifecycle::change_over(std::string id, model::SandboxStatus before,
                                             bool to_paused) {
    std::string code = error_code(to_paused ? "SANDBOX_PAUSE_FAILED" : "SANDBOX_RESUME_FAILED");
    auto begun = co_await set_status(id, to_paused ? pausing(now()) : resuming(now()));
    if (!begun) co_return begun.error().as(code);
    // Not one conditional expression: its temporaries would live across the suspension.
    Status done;
    if (to_paused) {
        done = co_await runtime_.pause(id);
    } else {
        done = co_await runtime_.resume(id);
    }
    model::SandboxStatus after = before;
    if (done) after = to_paused ? paused(now()) : running(now());
    auto ended = co_await set_status(id, after);
    if (!ended) {
        // What is so is shown; the next start writes it.
        log::error("cannot record a change", {{"sandbox", id}, {"error", ended.error().message()}});
        index_.update(id, [&](store::SandboxRecord& record) { record.sandbox.status = after; });
    }
    if (!done) {
        log::error(to_paused ? "pause failed" : "resume failed",
                   {{"sandbox", id}, {"error", done.error().message()}});
        co_return failed(done.error(), code, id);
    }
    log::info(to_paused ? "sandbox paused" : "sandbox resumed", {{"sandbox", id}});
    co_return Status();
}

/// Somebody else did something to it. News may be old by the time they are handled, so the runtime
/// is asked how it is now.
Awaitable<void> HostLifecycle::handle_change(std::string id, runtime::Change change) {
    if (change == runtime::Change::removed) {
        const auto* known = index_.find(id);
        // Our own removals and failed creates are seen, too.
        if (!known || removals_.contains(id)) co_return;
        if (known->record.sandbox.status.state == SandboxState::pending) co_return;
        log::warn("sandbox was removed by somebody else", {{"sandbox", id}});
        auto removed = co_await remove(id);
        if (!removed && removed.error().code() != ErrorCode::not_found) {
            log::error("cannot forget a sandbox",
                       {{"sandbox", id}, {"error", removed.error().message()}});
        }
        co_return;
    }
    auto turn = co_await turns_.lock(id);
    const auto* entry = index_.find(id);
    if (!entry) co_return;
    bool is_paused = change == runtime::Change::paused;
    auto seen = co_await runtime_.inspect(id);
    if (seen) is_paused = seen->paused;
    entry = index_.find(id);
    if (!entry) co_return;
    auto state = entry->record.sandbox.status.state;
    auto wanted = is_paused ? SandboxState::paused : SandboxState::running;
    bool settled = state == SandboxState::running || state == SandboxState::paused;
    if (!settled || state == wanted) co_return;
    auto recorded = co_await set_status(id, is_paused ? paused(now()) : running(now()));
    if (!recorded) {
        log::error("cannot record a change",
                   {{"sandbox", id}, {"error", recorded.error().message()}});
    }
    log::info(
        is_paused ? "sandbox was paused by somebody else" : "sandbox was resumed by somebody else",
        {{"sandbox", id}});
}

}  // namespace opensandbox::lifecycle
