#include "lifecycle/cluster/cluster_pools.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/cluster/cluster_error.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/allocation.hpp"
#include "runtime/kubernetes/workload/pooled_sandbox.hpp"

#include <random>

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;

constexpr std::string_view kAny = "*";

Error pool_error(const Error& error, std::string_view action) {
    Error made = cluster_error(error, action);
    return made.code() == ErrorCode::internal ? made.as("KUBERNETES::POOL_API_ERROR") : made;
}

Error pool_not_found(std::string_view name) {
    return {ErrorCode::not_found, "KUBERNETES::POOL_NOT_FOUND",
            "Pool " + std::string(name) + " not found."};
}

std::string pool_json(const kubernetes::Pool& pool) {
    model::Pool shown;
    shown.name = pool.metadata.name;
    shown.capacity = pool.capacity;
    shown.created_at = pool.metadata.creation_time.value_or(Timestamp());
    model::PoolStatus status;
    if (pool.status) {
        status.total = pool.status->total;
        status.allocated = pool.status->allocated;
        status.available = pool.status->available;
        status.revision = pool.status->revision;
    }
    return model::to_json(shown, status);
}

json::object capacity_json(const model::PoolCapacity& capacity) {
    return {{"bufferMin", capacity.buffer_min},
            {"bufferMax", capacity.buffer_max},
            {"poolMin", capacity.pool_min},
            {"poolMax", capacity.pool_max}};
}

}  // namespace

ClusterPools::ClusterPools(kube::Client& client, const kubernetes::KubernetesOptions& options,
                           SpaceOf space_of, const std::string& watched)
    : pods("pods of pools", kubernetes::read_pod),
      client_(client),
      options_(options),
      space_of_(std::move(space_of)),
      who_("server-" + new_hex_id()),
      pools_("pools", kubernetes::read_pool),
      pool_reflector_(client, kube::watch_of(kubernetes::kPools, watched, {}, {"spec", "status"}),
                      pools_),
      pod_reflector_(client,
                     kube::watch_of(kube::kPods, watched, kubernetes::label::kPoolName,
                                    kubernetes::pod_members()),
                     pods) {
    pods.listen([this](const auto& before, const auto& after) {
        const kube::Metadata& metadata = (after ? after : before)->metadata;
        auto& of_pool = by_pool_[{metadata.name_space, kubernetes::pool_of(metadata)}];
        const kube::ObjectKey key{metadata.name_space, metadata.name};
        if (after) {
            of_pool.insert(key);
        } else {
            of_pool.erase(key);
        }
    });
}

void ClusterPools::stop() {
    pool_reflector_.stop();
    pod_reflector_.stop();
}

Result<ClusterPools::PoolCache::Pointer> ClusterPools::find(const Key& key) const {
    auto pool = pools_.find({space_of_(key.first), key.second});
    if (!pool) return pool_not_found(key.second);
    return pool;
}

Result<std::string> ClusterPools::get(const Key& key) const {
    auto pool = find(key);
    if (!pool) return pool.error();
    return pool_json(**pool);
}

Result<std::string> ClusterPools::list(const std::string& tenant) const {
    const std::string space = space_of_(tenant);
    std::string items;
    for (const auto& [key, pool] : pools_.objects()) {
        if (key.name_space != space) continue;
        items += (items.empty() ? "" : ",") + pool_json(*pool);
    }
    return "{\"items\":[" + items + "]}";
}

Awaitable<Result<std::string>> ClusterPools::create(model::PoolRequest request,
                                                    std::string tenant) {
    auto given = json::parse(request.template_json);
    if (!given || !given->is_object())
        co_return Error(ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER",
                        "template: must be an object");
    auto pod_template =
        kubernetes::complete_pool_template(given->get_object(), options_, new_token());
    if (!pod_template) co_return pod_template.error().as("SANDBOX::INVALID_PARAMETER");
    json::object spec;
    spec["template"] = std::move(*pod_template);
    spec["capacitySpec"] = capacity_json(request.capacity);
    json::object pool{{"apiVersion", kube::api_version(kubernetes::kPools)},
                      {"kind", kubernetes::kPools.kind}};
    pool["metadata"] = json::object{{"name", request.name}};
    pool["spec"] = std::move(spec);
    auto made = co_await client_.create(kubernetes::kPools, space_of_(tenant), std::move(pool));
    if (!made && made.error().wire() == "AlreadyExists") {
        co_return Error(ErrorCode::conflict, "KUBERNETES::POOL_ALREADY_EXISTS",
                        "Pool " + request.name + " exists already.");
    }
    if (!made) co_return pool_error(made.error(), "create pool");
    auto stored = pools_.store(*made);
    if (!stored) co_return pool_error(stored.error(), "create pool");
    co_return pool_json(**stored);
}

Awaitable<Result<std::string>> ClusterPools::resize(Key key, model::PoolCapacity capacity) {
    auto pool = find(key);
    if (!pool) co_return pool.error();
    json::object spec;
    spec["capacitySpec"] = capacity_json(capacity);
    kube::Patch patch;
    json::object content;
    content["spec"] = std::move(spec);
    patch.content = std::move(content);
    auto patched = co_await client_.patch(kubernetes::kPools, {space_of_(key.first), key.second},
                                          std::move(patch));
    if (!patched && patched.error().code() == ErrorCode::not_found)
        co_return pool_not_found(key.second);
    if (!patched) co_return pool_error(patched.error(), "update pool");
    auto stored = pools_.store(*patched);
    if (!stored) co_return pool_error(stored.error(), "update pool");
    co_return pool_json(**stored);
}

Awaitable<Status> ClusterPools::remove(Key key) {
    auto pool = find(key);
    if (!pool) co_return pool.error();
    kube::Deletion deletion;
    deletion.propagation = "Background";
    auto removed =
        co_await client_.remove(kubernetes::kPools, {space_of_(key.first), key.second}, deletion);
    if (!removed) co_return pool_error(removed.error(), "delete pool");
    co_return Status();
}

std::vector<ClusterPools::Pods::Pointer> ClusterPools::idle_of(const kube::ObjectKey& pool) const {
    std::vector<Pods::Pointer> idle;
    const auto at = by_pool_.find(pool);
    if (at == by_pool_.end()) return idle;
    for (const kube::ObjectKey& key : at->second) {
        auto pod = pods.find(key);
        const bool ours =
            pod && pod->metadata.labels.contains(std::string(kubernetes::label::kClaimable));
        if (ours && kubernetes::is_idle(*pod) && !claiming_.contains(key)) idle.push_back(pod);
    }
    return idle;
}

Result<ClusterPools::PoolCache::Pointer> ClusterPools::choose(const std::string& space,
                                                              std::string_view name) const {
    if (name != kAny) {
        auto pool = pools_.find({space, std::string(name)});
        if (!pool || pool->metadata.deletion_time) return pool_not_found(name);
        return pool;
    }
    PoolCache::Pointer any;
    for (const auto& [key, pool] : pools_.objects()) {
        if (key.name_space != space || pool->metadata.deletion_time) continue;
        if (!idle_of(key).empty()) return pool;
        if (!any) any = pool;
    }
    if (!any) return pool_not_found(name);
    return any;
}

Awaitable<Result<ClusterPools::Pods::Pointer>> ClusterPools::claim(kube::ObjectKey pool,
                                                                   std::string sandbox) {
    // Servers that choose among the same pods shall not all want the first.
    std::minstd_rand chance(std::random_device{}());
    while (true) {
        const auto idle = idle_of(pool);
        if (idle.empty()) co_return Pods::Pointer();
        const auto& pod = idle[chance() % idle.size()];
        const kube::ObjectKey key{pod->metadata.name_space, pod->metadata.name};
        claiming_.insert(key);
        ScopeExit done([this, key] { claiming_.erase(key); });
        kube::Apply apply;
        apply.content = kubernetes::claim_content(pod->metadata, sandbox, who_, now());
        apply.field_manager = "opensandbox-" + who_;
        auto claimed = co_await client_.apply(kube::kPods, key, std::move(apply));
        if (claimed) {
            auto stored = pods.store(*claimed);
            if (!stored) co_return cluster_error(stored.error(), "claim a pod");
            // It may have ended between the watch and the claim.
            if ((*stored)->is_ready()) co_return *stored;
            (void)co_await discard(*stored);
            continue;
        }
        const ErrorCode code = claimed.error().code();
        if (code != ErrorCode::conflict && code != ErrorCode::not_found)
            co_return cluster_error(claimed.error(), "claim a pod");
        // Another has it: the watch says so in a moment, and it must not be tried until then.
        auto now_known = co_await client_.get(kube::kPods, key);
        if (now_known) {
            (void)pods.store(*now_known);
        } else {
            json::object gone;
            gone["metadata"] = json::object{
                {"name", key.name}, {"namespace", key.name_space}, {"uid", pod->metadata.uid}};
            pods.remove(gone);
        }
    }
}

Awaitable<Status> ClusterPools::discard(Pods::Pointer pod) {
    kube::Deletion deletion;
    deletion.uid = pod->metadata.uid;
    auto removed = co_await client_.remove(
        kube::kPods, {pod->metadata.name_space, pod->metadata.name}, deletion);
    if (!removed && removed.error().code() == ErrorCode::conflict) co_return Status();
    co_return removed;
}

}  // namespace opensandbox::lifecycle
