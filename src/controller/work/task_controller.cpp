#include "controller/work/task_controller.hpp"

#include "base/log.hpp"
#include "controller/plan/pod_document.hpp"
#include "controller/plan/task_plan.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/allocation.hpp"

#include <algorithm>

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;
namespace annotation = kubernetes::annotation;

using State = model::TaskStatus::State;

constexpr std::chrono::milliseconds kBetweenQuestions{3'000};
/// Of sandboxes of a server, which see their agents themselves.
constexpr std::chrono::milliseconds kBetweenQuestionsOfServers{20'000};

bool is_of_a_server(const kubernetes::BatchSandbox& batch) {
    return batch.metadata.labels.contains(std::string(kubernetes::label::kId));
}

}  // namespace

TaskController::TaskController(asio::any_io_executor executor, kube::Client& client,
                               ClusterView& view, std::size_t workers)
    : client_(client),
      view_(view),
      executors_(executor),
      queue_(executor, workers, [this](kube::ObjectKey key) { return look_at(std::move(key)); }) {
    view_.batches.listen([this](const auto& before, const auto& after) {
        const auto& known = after ? after : before;
        if (!known->task_template.is_object()) return;
        if (!after) {
            tasks_.erase(known->metadata.uid);
            queue_.forget(key_of(known->metadata));
            return;
        }
        queue_.add(key_of(known->metadata));
    });
    view_.pods.listen([this](const auto&, const auto& after) {
        if (!after) return;
        const kube::Owner* owner = kube::controller_of(after->metadata);
        if (!owner) return;
        const auto batch = view_.batches.find({after->metadata.name_space, owner->name});
        if (batch && batch->task_template.is_object()) queue_.add(key_of(batch->metadata));
    });
}

std::vector<PodPointer> TaskController::pods_of(const BatchSandbox& batch) const {
    std::vector<PodPointer> pods;
    const std::string& space = batch.metadata.name_space;
    if (kubernetes::is_pooled(batch)) {
        auto names = kubernetes::pods_in(batch.metadata, annotation::kAllocated);
        if (!names) return pods;
        for (const std::string& name : *names)
            pods.push_back(view_.pool_pods.find({space, name}));
        return pods;
    }
    for (std::int64_t index = 0; index < batch.replicas; ++index) {
        auto pod = view_.pods.find({space, pod_name(batch.metadata, index)});
        const kube::Owner* owner = pod ? kube::controller_of(pod->metadata) : nullptr;
        pods.push_back(owner && owner->uid == batch.metadata.uid ? pod : nullptr);
    }
    return pods;
}

std::string TaskController::token_for(const BatchSandbox& batch) const {
    if (!kubernetes::is_pooled(batch)) return {};
    const auto pool = view_.pools.find({batch.metadata.name_space, batch.pool});
    return pool ? kubernetes::task_token_of(*pool) : std::string();
}

kubernetes::BatchCounters TaskController::counters_of(const BatchSandbox& batch) const {
    kubernetes::BatchCounters counters;
    if (!batch.task_template.is_object()) return counters;
    const auto at = tasks_.find(batch.metadata.uid);
    for (std::int64_t index = 0; index < batch.replicas; ++index) {
        const Progress* progress = nullptr;
        if (at != tasks_.end()) {
            const auto found = at->second.find(index);
            if (found != at->second.end()) progress = &found->second;
        }
        if (!progress || progress->pod_uid.empty()) {
            ++counters.task_pending;
        } else if (progress->status.state == State::running) {
            ++counters.task_running;
        } else if (progress->status.state == State::terminated) {
            ++(progress->status.succeeded() ? counters.task_succeed : counters.task_failed);
        } else {
            ++counters.task_unknown;
        }
    }
    return counters;
}

Awaitable<Result<WorkQueue::Again>> TaskController::look_at(kube::ObjectKey key) {
    const auto batch = view_.batches.find(key);
    if (!batch || batch->metadata.deletion_time || !batch->task_template.is_object())
        co_return WorkQueue::Again();
    const std::string uid = batch->metadata.uid;
    const kubernetes::BatchCounters before = counters_of(*batch);
    const std::vector<PodPointer> pods = pods_of(*batch);
    Tasks tasks = tasks_[uid];
    bool unsettled = false;
    for (std::size_t index = 0; index < pods.size(); ++index) {
        const PodPointer& pod = pods[index];
        if (!pod || pod->address.empty() || pod->has_ended() || pod->is_going()) continue;
        Progress& progress = tasks[static_cast<std::int64_t>(index)];
        if (progress.pod_uid == pod->metadata.uid && progress.status.state == State::terminated)
            continue;
        auto asked = co_await ask(batch.get(), static_cast<std::int64_t>(index), pod, &tasks);
        if (!asked && asked.error().code() == ErrorCode::invalid_argument)
            log::warn("a task cannot be given",
                      {{"batchsandbox", kube::to_string(key)}, {"error", asked.error().message()}});
        unsettled = true;
    }
    if (!view_.batches.find(key)) co_return WorkQueue::Again();
    tasks_[uid] = tasks;
    if (counters_of(*batch) != before) view_.batches.touch(key);
    if (batch->releases_pods) {
        if (auto released = co_await release_pods(batch.get(), &tasks); !released)
            co_return released.error();
    }
    if (!unsettled) co_return WorkQueue::Again();
    co_return is_of_a_server(*batch) ? kBetweenQuestionsOfServers : kBetweenQuestions;
}

Awaitable<Status> TaskController::ask(const BatchSandbox* batch, std::int64_t index, PodPointer pod,
                                      Tasks* tasks) {
    Progress& progress = (*tasks)[index];
    if (progress.pod_uid != pod->metadata.uid) {
        progress = Progress();
        progress.pod_uid = pod->metadata.uid;
    }
    auto wanted = task_of(*batch, index);
    if (!wanted) co_return wanted.error();
    const std::string name = wanted->name;
    const kubernetes::TaskExecutor executor{pod->address, token_for(*batch)};
    auto known = co_await executors_.list(executor);
    if (!known) {
        // It may not listen yet, or not now: what it was known to do it may still do.
        if (!progress.reached) progress.status.state = State::unknown;
        co_return known.error();
    }
    progress.reached = true;
    auto at = std::ranges::find(*known, name, &model::Task::name);
    if (at == known->end()) {
        std::vector<model::Task> all;
        all.push_back(std::move(*wanted));
        known = co_await executors_.set(executor, std::move(all));
        if (!known) co_return known.error();
        at = std::ranges::find(*known, name, &model::Task::name);
    }
    if (at != known->end()) progress.status = at->status;
    co_return Status();
}

/// Policy Release: a pod whose task has ended goes back to its pool.
Awaitable<Status> TaskController::release_pods(const BatchSandbox* batch, const Tasks* tasks) {
    if (!kubernetes::is_pooled(*batch)) co_return Status();
    auto names = kubernetes::pods_in(batch->metadata, annotation::kAllocated);
    auto back = kubernetes::pods_in(batch->metadata, annotation::kRelease);
    if (!names || !back) co_return Status();
    const std::size_t before = back->size();
    for (const auto& [index, progress] : *tasks) {
        const auto at = static_cast<std::size_t>(index);
        if (progress.status.state != State::terminated || at >= names->size()) continue;
        if (std::ranges::find(*back, (*names)[at]) == back->end()) back->push_back((*names)[at]);
    }
    if (back->size() == before) co_return Status();
    json::object change{{"uid", batch->metadata.uid}};
    change["annotations"] = json::object{{annotation::kRelease, kubernetes::pods_text(*back)}};
    json::object content;
    content["metadata"] = std::move(change);
    kube::Patch patch;
    patch.content = std::move(content);
    auto patched = co_await client_.patch(kubernetes::kBatchSandboxes, key_of(batch->metadata),
                                          std::move(patch));
    if (!patched && patched.error().code() == ErrorCode::not_found) co_return Status();
    if (!patched) co_return patched.error();
    (void)view_.batches.store(*patched);
    co_return Status();
}

}  // namespace opensandbox::controller
