#include "lifecycle/cluster/birth.hpp"

#include "base/log.hpp"
#include "lifecycle/cluster/cluster_record.hpp"
#include "runtime/agent_greeting.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/pod_failure.hpp"

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;

/// An agent that does not answer is asked anew with what is known of its pod by then.
constexpr std::chrono::seconds kGreeting{2};
constexpr std::chrono::seconds kBetweenRemovals{5};

Error pod_failed(const std::string& why) {
    return {ErrorCode::internal, "KUBERNETES::POD_FAILED", "Sandbox failed to start: " + why};
}

/// How far it came, for who waited in vain.
std::string progress_of(const model::SandboxStatus& status) {
    return status.reason + (status.message.empty() ? "" : ": " + status.message);
}

}  // namespace

/// Returns when its agent answers.
Awaitable<Status> ClusterLifecycle::await_birth(std::string id, std::string token) {
    ChangeBoard::Watch news(changes_, id);
    const auto limit = settings_.options.create_timeout;
    const auto until = std::chrono::steady_clock::now() + limit;
    std::optional<std::chrono::steady_clock::time_point> full_since;
    while (true) {
        const auto* entry = index_.find(id);
        const auto batch = find_batch(id);
        if (!entry || !batch)
            co_return Error(ErrorCode::conflict, error_code("SANDBOX_NOT_FOUND"),
                            "Sandbox " + id + " was removed while it started.");
        const model::SandboxStatus status = entry->record.sandbox.status;
        switch (status.state) {
            case model::SandboxState::failed: co_return pod_failed(status.message);
            case model::SandboxState::terminated: co_return pod_failed("its entrypoint has ended");
            case model::SandboxState::stopping:
                co_return pod_failed("it was removed while it started");
            default: break;
        }
        if (status.reason == "POD_CREATE_FAILED" &&
            status.message.find("exceeded quota") != std::string::npos) {
            co_return Error(ErrorCode::permission_denied, error_code("QUOTA_EXCEEDED"),
                            "Sandbox failed to start: " + status.message);
        }
        const auto pod = find_pod(*batch);
        if (has_answered(pod.get())) co_return Status();
        auto left = until - std::chrono::steady_clock::now();
        if (status.reason == "POOL_CAPACITY_EXHAUSTED") {
            if (!full_since) full_since = std::chrono::steady_clock::now();
            const auto rest =
                *full_since + settings_.options.pool_timeout - std::chrono::steady_clock::now();
            if (rest <= std::chrono::seconds(0)) {
                co_return Error(ErrorCode::resource_exhausted,
                                error_code("POOL_CAPACITY_EXHAUSTED"),
                                "Sandbox got no pod: " + status.message);
            }
            left = std::min<std::chrono::steady_clock::duration>(left, rest);
        }
        if (left <= std::chrono::seconds(0)) {
            co_return Error(ErrorCode::timeout, error_code("POD_READY_TIMEOUT"),
                            "Sandbox was not ready within " + std::to_string(limit.count()) +
                                " s: " + progress_of(status));
        }
        if (pod && !pod->address.empty() && !pod->is_going()) {
            if (co_await greet(id, pod, token)) continue;
        } else {
            co_await news.wait_for(left);
        }
    }
}

/// Whether the agent of this pod answers, asked for a while.
Awaitable<bool> ClusterLifecycle::greet(std::string id, Pods::Pointer pod, std::string token) {
    const std::string uid = pod->metadata.uid;
    const kube::ObjectKey key{pod->metadata.name_space, pod->metadata.name};
    std::function<bool()> ended = [this, key, uid] {
        const auto known = known_pod(key);
        return !known || known->metadata.uid != uid || known->is_going() || known->has_ended() ||
               kubernetes::failure_of(*known).has_value();
    };
    model::AgentAddress address(pod->address, kubernetes::kAgentPort);
    std::vector<model::AgentAddress> addresses{std::move(address)};
    auto greeting = co_await runtime::await_agent(probes_, std::move(addresses), std::move(token),
                                                  std::move(ended), kGreeting);
    if (greeting != runtime::Greeting::ready) co_return false;
    if (!known_pod(key)) co_return false;
    answered_.insert(uid);
    if (const auto batch = find_batch(id)) show(*batch);
    co_return true;
}

/// Removes what a create wrote, again and again until it is gone.
Awaitable<void> ClusterLifecycle::roll_back(std::string id, std::string space, std::string uid) {
    ++busy_;
    while (true) {
        kube::Deletion deletion;
        deletion.grace_seconds = 0;
        deletion.uid = uid;
        deletion.propagation = "Background";
        Status removed;
        if (!uid.empty()) {
            removed = co_await client_.remove(kubernetes::kBatchSandboxes, {space, id}, deletion);
            // Another of its name is another's.
            if (!removed && removed.error().code() == ErrorCode::conflict) removed = Status();
        }
        if (removed) removed = co_await remove_managed_claims(id, space);
        if (removed) break;
        log::warn("cannot undo a create yet",
                  {{"sandbox", id}, {"error", removed.error().message()}});
        if (stopping_) break;
        co_await net::sleep_for(kBetweenRemovals);
    }
    --busy_;
}

}  // namespace opensandbox::lifecycle
