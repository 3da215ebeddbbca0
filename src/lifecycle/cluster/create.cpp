#include "base/digest.hpp"
#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/cluster/birth.hpp"
#include "lifecycle/cluster/cluster_error.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/workload/batch_sandbox.hpp"
#include "runtime/kubernetes/workload/pod_template.hpp"

#include <algorithm>

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;

/// The id that every server makes of the same key: a UUID (version 8, RFC 9562).
std::string id_of_key(const std::string& key) {
    std::string hex = sha256_hex("opensandbox " + key).substr(0, 32);
    hex[12] = '8';
    hex[16] = "89ab"[(hex[16] >= 'a' ? hex[16] - 'a' + 10 : hex[16] - '0') % 4];
    return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
           hex.substr(16, 4) + "-" + hex.substr(20);
}

void give_id(Admitted& admitted, const std::string& id) {
    for (auto& [name, value] : admitted.spec.env) {
        if (name == "OPENSANDBOX_ID" && value == admitted.spec.id) value = id;
    }
    admitted.spec.id = id;
    admitted.record.sandbox.id = id;
}

}  // namespace

std::string ClusterLifecycle::mark_of(const IdempotencyKey& key) {
    return sha256_hex(key.key) + "." + key.body_digest;
}

Awaitable<Result<ClusterLifecycle::Created>> ClusterLifecycle::create(
    model::CreateRequest request, std::optional<IdempotencyKey> key, Requester requester) {
    // Tenants do not see each other's keys.
    if (key && !requester.tenant.empty()) key->key = requester.tenant + " " + key->key;
    const std::string space = space_of(requester.tenant);
    if (key) {
        const std::string id = id_of_key(key->key);
        if (find_batch(id)) co_return co_await join(id, *key, space);
    }
    Birth birth;
    if (const std::string_view name = pool_of(request); !name.empty()) {
        auto pool = pools_.choose(space, name);
        if (!pool) co_return pool.error();
        birth.pool = *pool;
        auto wanted = pooled_request(request, **pool);
        if (!wanted) co_return wanted.error();
        request = std::move(*wanted);
    }
    auto admitted = admit(request, rules_, now());
    if (!admitted) co_return admitted.error();
    if (key) give_id(*admitted, id_of_key(key->key));
    admitted->spec.tenant = admitted->record.tenant = requester.tenant;
    const runtime::SandboxSpec& spec = admitted->spec;
    if (auto checked = kubernetes::check_workload(spec, settings_.options); !checked)
        co_return checked.error();
    for (const std::string& warning : admitted->warnings)
        log::warn("create", {{"sandbox", spec.id}, {"note", warning}});

    birth.admitted = std::move(*admitted);
    birth.space = space;
    birth.key = std::move(key);
    auto claim = quotas_.claim(birth.admitted.record, requester.quota, index_);
    if (!claim) co_return claim.error();
    birth.claim = std::move(*claim);
    ++busy_;
    ScopeExit leave([this] { --busy_; });
    if (birth.pool) co_return co_await make_pooled(&birth);
    co_return co_await make(birth);
}

Awaitable<Result<ClusterLifecycle::Created>> ClusterLifecycle::make(Birth& birth) {
    const std::string id = birth.admitted.spec.id;
    auto written = co_await write_objects(birth);
    if (birth.taken) co_return co_await join(id, *birth.key, birth.space);
    co_return co_await finish_birth(&birth, std::move(written));
}

/// Waits for the agent when all is written; else takes back what was.
Awaitable<Result<ClusterLifecycle::Created>> ClusterLifecycle::finish_birth(Birth* birth,
                                                                            Status outcome) {
    const std::string id = birth->admitted.spec.id;
    if (outcome) outcome = co_await await_birth(id, birth->admitted.spec.agent_token);
    if (!outcome) {
        log::warn("create failed", {{"sandbox", id}, {"error", outcome.error().message()}});
        // Behind the answer: it goes on until nothing is left.
        spawn(roll_back(id, birth->space, birth->uid), "undo a create");
        co_return outcome.error();
    }
    const auto* entry = index_.find(id);
    if (!entry) co_return not_found(id);
    model::Sandbox shown = entry->record.sandbox;
    // Labels do not tell an empty map from none.
    shown.metadata = birth->admitted.record.sandbox.metadata;
    Created created;
    created.id = id;
    created.json = model::to_create_json(shown);
    co_return created;
}

/// Another request with the key has made it, or is making it, at this server or another.
Awaitable<Result<ClusterLifecycle::Created>> ClusterLifecycle::join(std::string id,
                                                                    IdempotencyKey key,
                                                                    std::string space) {
    auto batch = find_batch(id);
    if (!batch) {
        auto object = co_await client_.get(kubernetes::kBatchSandboxes, {space, id});
        if (!object) co_return cluster_error(object.error(), "read sandbox");
        auto stored = batches_.store(*object);
        if (!stored) co_return cluster_error(stored.error(), "read sandbox");
        batch = *stored;
    }
    const auto& annotations = batch->metadata.annotations;
    const auto mark = annotations.find(std::string(kubernetes::annotation::kIdempotency));
    if (mark == annotations.end() || mark->second != mark_of(key)) co_return reused_key(key.key);
    const auto* entry = index_.find(id);
    auto born = co_await await_birth(id, entry ? entry->record.agent_token : std::string());
    if (!born) co_return born.error();
    entry = index_.find(id);
    if (!entry) co_return not_found(id);
    Created created;
    created.id = id;
    created.json = model::to_create_json(entry->record.sandbox);
    created.replayed = true;
    co_return created;
}

Awaitable<Status> ClusterLifecycle::write_objects(Birth& birth) {
    const runtime::SandboxSpec& spec = birth.admitted.spec;
    if (auto prepared = co_await prepare_claims(birth); !prepared) co_return prepared;
    kubernetes::WorkloadMarks marks;
    if (spec.network_policy) marks.egress_token = new_token();
    if (birth.key) marks.idempotency = mark_of(*birth.key);
    auto manifest = kubernetes::batch_sandbox_manifest(spec, settings_.options, marks);
    auto made = co_await client_.create(kubernetes::kBatchSandboxes, birth.space, manifest);
    if (!made) {
        if (made.error().wire() == "AlreadyExists" && birth.key) {
            birth.taken = true;
            co_return Status();
        }
        if (made.error().code() == ErrorCode::not_found) {
            co_return Error(ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER",
                            "kubernetes.namespace: " + made.error().message());
        }
        co_return cluster_error(made.error(), "create sandbox");
    }
    auto stored = batches_.store(*made);
    if (!stored) co_return cluster_error(stored.error(), "create sandbox");
    birth.claim.release();
    const kube::Metadata& metadata = (*stored)->metadata;
    birth.uid = metadata.uid;
    kube::Owner owner(kube::api_version(kubernetes::kBatchSandboxes),
                      std::string(kubernetes::kBatchSandboxes.kind), metadata.name, metadata.uid);
    if (spec.image_auth) {
        auto secret = kubernetes::image_secret_manifest(spec, owner);
        auto kept = co_await client_.create(kube::kSecrets, birth.space, std::move(secret));
        if (!kept) co_return cluster_error(kept.error(), "create the secret for the image");
    }
    co_await hand_over_claims(birth, std::move(owner));
    co_return Status();
}

}  // namespace opensandbox::lifecycle
