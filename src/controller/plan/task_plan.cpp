#include "controller/plan/task_plan.hpp"

#include "kube/object/strategic_merge.hpp"

namespace opensandbox::controller {

Result<model::Task> task_of(const runtime::kubernetes::BatchSandbox& batch, std::int64_t index) {
    const json::object* from = batch.task_template.if_object();
    if (!from) return invalid("spec.taskTemplate: must be an object");
    json::object wanted = *from;
    const auto at = static_cast<std::size_t>(index);
    if (at < batch.shard_task_patches.size()) {
        auto patched = kube::strategic_merge(std::move(wanted), batch.shard_task_patches[at],
                                             kube::PatchSchema::task);
        if (!patched)
            return patched.error().within("spec.shardTaskPatches[" + std::to_string(index) + "]");
        wanted = std::move(*patched);
    }
    boost::system::error_code missing;
    const json::value document(std::move(wanted));
    const json::value* process = document.find_pointer("/spec/process", missing);
    if (!process || !process->is_object())
        return invalid("spec.taskTemplate.spec.process: must be an object");
    auto read = model::read_task_process(process->get_object());
    if (!read) return read.error().within("spec.taskTemplate.spec.process");
    model::Task task;
    task.name = batch.metadata.name + "-" + std::to_string(index);
    task.process = std::move(*read);
    if (const json::value* limit = document.find_pointer("/spec/timeoutSeconds", missing);
        limit && limit->is_int64()) {
        task.process->timeout_seconds = limit->get_int64();
    }
    return task;
}

}  // namespace opensandbox::controller
