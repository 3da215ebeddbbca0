#include "runtime/kubernetes/observed/batch_sandbox.hpp"

#include "json/fields.hpp"
#include "runtime/kubernetes/names.hpp"

namespace opensandbox::runtime::kubernetes {
namespace {

constexpr auto kCounterMembers = [](auto& walker, auto& counters) {
    walker.put(json::Field("replicas").may_lack(), counters.replicas);
    walker.put(json::Field("allocated").may_lack(), counters.allocated);
    walker.put(json::Field("ready").may_lack(), counters.ready);
    walker.put(json::Field("taskRunning").may_lack(), counters.task_running);
    walker.put(json::Field("taskSucceed").may_lack(), counters.task_succeed);
    walker.put(json::Field("taskFailed").may_lack(), counters.task_failed);
    walker.put(json::Field("taskPending").may_lack(), counters.task_pending);
    walker.put(json::Field("taskUnknown").may_lack(), counters.task_unknown);
};

constexpr auto kStatusMembers = [](auto& walker, auto& status) {
    walker.put(json::Field("observedGeneration").may_lack(), status.observed_generation);
    walker.put(json::Field("pauseObservedGeneration").may_lack(), status.pause_observed_generation);
    walker.put(json::Field("phase").may_lack(), status.phase);
};

constexpr auto kSpecMembers = [](auto& walker, auto& batch) {
    walker.put(json::Field("replicas").may_lack(), batch.replicas);
    walker.put(json::Field("poolRef").may_lack(), batch.pool);
    walker.put("expireTime", batch.expires_at);
    walker.put("pause", batch.pause);
};

Status read_spec(const json::object& spec, BatchSandbox& batch) {
    auto read = json::read_fields<BatchSandbox>(spec, kSpecMembers);
    if (!read) return read.error();
    batch.replicas = read->replicas;
    batch.pool = std::move(read->pool);
    batch.expires_at = read->expires_at;
    batch.pause = read->pause;
    auto policy = json::get_string(spec, "taskResourcePolicyWhenCompleted");
    if (!policy) return policy.error();
    batch.releases_pods = *policy == "Release";
    if (const json::value* pod = json::find(spec, "template")) batch.pod_template = *pod;
    if (const json::value* patches = json::find(spec, "shardPatches"); patches) {
        if (!patches->is_array()) return invalid("shardPatches: must be a list");
        batch.shard_patches = patches->get_array();
    }
    if (const json::value* task = json::find(spec, "taskTemplate")) batch.task_template = *task;
    if (const json::value* patches = json::find(spec, "shardTaskPatches")) {
        if (!patches->is_array()) return invalid("shardTaskPatches: must be a list");
        batch.shard_task_patches = patches->get_array();
    }
    return {};
}

Status read_status(const json::object& from, BatchStatus& status) {
    auto read = json::read_fields<BatchStatus>(from, kStatusMembers);
    if (!read) return read.error();
    auto counters = json::read_fields<BatchCounters>(from, kCounterMembers);
    if (!counters) return counters.error();
    auto conditions = read_conditions(from);
    if (!conditions) return conditions.error();
    status = std::move(*read);
    status.counters = *counters;
    status.conditions = std::move(*conditions);
    return {};
}

}  // namespace

Result<BatchSandbox> read_batch_sandbox(const json::object& object) {
    auto metadata = kube::read_metadata(object);
    if (!metadata) return metadata.error();
    BatchSandbox batch;
    batch.metadata = std::move(*metadata);
    if (const json::value* spec = json::find(object, "spec")) {
        if (!spec->is_object()) return invalid("spec: must be an object");
        if (auto read = read_spec(spec->get_object(), batch); !read)
            return read.error().within("spec");
    }
    if (const json::value* status = json::find(object, "status")) {
        if (!status->is_object()) return invalid("status: must be an object");
        if (auto read = read_status(status->get_object(), batch.status); !read)
            return read.error().within("status");
    }
    return batch;
}

json::object write_batch_status(const BatchStatus& status) {
    json::object out = json::write_fields(status, kStatusMembers);
    for (auto& [name, value] : json::write_fields(status.counters, kCounterMembers))
        out[name] = value;
    if (status.phase.empty()) out.erase("phase");
    out["conditions"] = write_conditions(status.conditions);
    return out;
}

bool is_pooled(const BatchSandbox& batch) {
    return !batch.pool.empty() && !batch.pod_template.is_object();
}

std::vector<std::string> endpoints_of(const BatchSandbox& batch) {
    const auto at = batch.metadata.annotations.find(std::string(annotation::kEndpoints));
    if (at == batch.metadata.annotations.end()) return {};
    auto list = json::parse(at->second);
    if (!list || !list->is_array()) return {};
    std::vector<std::string> addresses;
    for (const json::value& address : list->get_array())
        addresses.emplace_back(address.is_string() ? std::string(address.get_string()) : "");
    return addresses;
}

}  // namespace opensandbox::runtime::kubernetes
