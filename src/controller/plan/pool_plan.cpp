#include "controller/plan/pool_plan.hpp"

#include "base/digest.hpp"
#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/allocation.hpp"
#include "runtime/kubernetes/observed/pod_failure.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;
namespace annotation = kubernetes::annotation;
namespace label = kubernetes::label;

using kubernetes::Pod;
using kubernetes::Pool;

/// For the sandbox of a claim to be written down.
constexpr std::chrono::seconds kUnconfirmed{30};
/// Idle pods that are removed at once because there are too many.
constexpr std::int64_t kIdleRemovedAtOnce = 20;
constexpr std::chrono::milliseconds kBetween{1'000};

void look_again_at(PoolPlan& plan, std::chrono::microseconds after) {
    const auto wait =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(after), std::chrono::milliseconds(1));
    plan.again = plan.again ? std::min(*plan.again, wait) : wait;
}

bool is_older(const PodPointer& a, const PodPointer& b) {
    if (a->metadata.creation_time != b->metadata.creation_time)
        return a->metadata.creation_time < b->metadata.creation_time;
    return a->metadata.name < b->metadata.name;
}

/// What is known of the pods of a pool.
struct Stock {
    std::map<std::string, PodPointer> by_name;
    std::vector<PodPointer> idle;     ///< ready and nobody's, oldest first
    std::vector<PodPointer> waiting;  ///< nobody's and not ready yet
    std::set<std::string> held;       ///< somebody's
    std::int64_t total = 0;
    std::int64_t schedulable = 0;
    std::int64_t not_ready = 0;
};

/// Names of pods that sandboxes have, and whose each is.
std::map<std::string, std::string> holders(const std::vector<BatchPointer>& batches) {
    std::map<std::string, std::string> holders;
    for (const BatchPointer& batch : batches) {
        auto pods = kubernetes::allocated_pods(batch->metadata);
        if (!pods) continue;
        for (const std::string& pod : *pods)
            holders[pod] = batch->metadata.name;
    }
    return holders;
}

Stock take_stock(const std::vector<PodPointer>& pods,
                 const std::map<std::string, std::string>& holders) {
    Stock stock;
    for (const PodPointer& pod : pods) {
        stock.by_name[pod->metadata.name] = pod;
        ++stock.total;
        if (pod->is_going()) continue;
        const bool claimed = !kubernetes::claim_of(pod->metadata).sandbox.empty();
        const bool held = claimed || holders.contains(pod->metadata.name);
        const bool leaves = pod->metadata.labels.contains(std::string(label::kEvict));
        if (held) stock.held.insert(pod->metadata.name);
        if (!held && leaves) continue;
        ++stock.schedulable;
        if (!pod->is_ready()) ++stock.not_ready;
        if (held) continue;
        (kubernetes::is_idle(*pod) ? stock.idle : stock.waiting).push_back(pod);
    }
    std::ranges::sort(stock.idle, is_older);
    std::ranges::sort(stock.waiting, is_older);
    return stock;
}

/// Claims that led to nothing, and idle pods that were asked to go or will never be ready.
void plan_litter(const Stock& stock, const std::map<std::string, std::string>& holders,
                 const std::map<std::string, BatchPointer>& by_name, Timestamp now,
                 PoolPlan& plan) {
    for (const auto& [name, pod] : stock.by_name) {
        if (pod->is_going()) continue;
        const auto claim = kubernetes::claim_of(pod->metadata);
        const auto holder = holders.find(name);
        if (claim.sandbox.empty() && holder == holders.end()) {
            const bool leaves = pod->metadata.labels.contains(std::string(label::kEvict));
            const auto failure = kubernetes::failure_of(*pod);
            if (leaves || pod->has_ended() ||
                (failure && failure->kind == kubernetes::PodFailure::Kind::terminal)) {
                plan.remove.push_back(pod);
            }
            continue;
        }
        if (holder != holders.end() && (claim.sandbox.empty() || holder->second == claim.sandbox))
            continue;
        const auto age = now - claim.since;
        const auto batch = by_name.find(claim.sandbox);
        const bool settled = batch == by_name.end() || batch->second->metadata.deletion_time;
        if (age >= kUnconfirmed && (settled || holder == holders.end())) {
            plan.remove.push_back(pod);
        } else {
            look_again_at(plan, kUnconfirmed - age);
        }
    }
}

/// What it wants to give back and has not.
void plan_return(const BatchPointer& batch, const Stock& stock, PoolPlan& plan) {
    auto wanted = kubernetes::pods_in(batch->metadata, annotation::kRelease);
    auto done = kubernetes::pods_in(batch->metadata, annotation::kReleased);
    if (!wanted || !done) return;
    PoolPlan::Return made{.batch = batch, .names = {}, .pods = {}};
    for (const std::string& name : *wanted) {
        if (std::ranges::find(*done, name) != done->end()) continue;
        made.names.push_back(name);
        const auto at = stock.by_name.find(name);
        if (at != stock.by_name.end() && !at->second->is_going()) made.pods.push_back(at->second);
    }
    if (!made.names.empty()) plan.returns.push_back(std::move(made));
}

/// What sandboxes want; returns how many pods are lacking.
std::int64_t plan_grants(const std::vector<BatchPointer>& batches, Stock& stock, PoolPlan& plan) {
    std::int64_t lacking = 0;
    for (const BatchPointer& batch : batches) {
        auto pods = kubernetes::allocated_pods(batch->metadata);
        if (!pods) continue;
        if (batch->metadata.deletion_time) {
            PoolPlan::Release release{.batch = batch, .pods = {}};
            for (const std::string& name : *pods) {
                const auto at = stock.by_name.find(name);
                if (at != stock.by_name.end() && !at->second->is_going())
                    release.pods.push_back(at->second);
            }
            const auto& finalizers = batch->metadata.finalizers;
            if (std::ranges::find(finalizers, kubernetes::kAllocationFinalizer) !=
                finalizers.end()) {
                plan.releases.push_back(std::move(release));
            }
            continue;
        }
        plan_return(batch, stock, plan);
        PoolPlan::Grant grant{.batch = batch, .pods = {}, .lost = {}};
        for (const std::string& name : *pods) {
            const auto at = stock.by_name.find(name);
            if (at == stock.by_name.end() || at->second->is_going()) grant.lost.push_back(name);
        }
        const auto given = kubernetes::pods_in(batch->metadata, annotation::kAllocated);
        std::int64_t wanted = batch->replicas - static_cast<std::int64_t>(given->size()) +
                              static_cast<std::int64_t>(grant.lost.size());
        // Claims of its own that are not written down yet count as given.
        for (const auto& [name, pod] : stock.by_name) {
            const bool ours = kubernetes::claim_of(pod->metadata).sandbox == batch->metadata.name;
            if (ours && !pod->is_going() && std::ranges::find(*pods, name) == pods->end() &&
                wanted > 0) {
                grant.pods.push_back(pod);
                --wanted;
            }
        }
        while (wanted > 0 && !stock.idle.empty()) {
            grant.pods.push_back(stock.idle.front());
            stock.held.insert(stock.idle.front()->metadata.name);
            stock.idle.erase(stock.idle.begin());
            --wanted;
        }
        lacking += std::max<std::int64_t>(wanted, 0);
        if (!grant.pods.empty()) plan.grants.push_back(std::move(grant));
    }
    return lacking;
}

/// Idle pods of an older template, as many as may be missing. Returns how many.
std::int64_t plan_update(const Pool& pool, const std::string& revision, Stock& stock,
                         PoolPlan& plan) {
    std::int64_t marked = 0;
    const auto is_old = [&](const PodPointer& pod) {
        return kube::label_of(pod->metadata, label::kPoolRevision) != revision;
    };
    for (const PodPointer& pod : stock.waiting) {
        if (!is_old(pod)) continue;
        plan.remove.push_back(pod);
        ++marked;
    }
    std::erase_if(stock.waiting, is_old);
    std::int64_t budget =
        pool.update.of(stock.total) - static_cast<std::int64_t>(stock.waiting.size());
    std::vector<PodPointer> kept;
    for (const PodPointer& pod : stock.idle) {
        if (is_old(pod) && budget > 0) {
            plan.remove.push_back(pod);
            ++marked;
            --budget;
        } else {
            kept.push_back(pod);
        }
    }
    stock.idle = std::move(kept);
    return marked;
}

void plan_size(const Pool& pool, std::int64_t lacking, std::int64_t updated, Stock& stock,
               PoolPlan& plan) {
    const model::PoolCapacity& capacity = pool.capacity;
    const auto allocated = static_cast<std::int64_t>(stock.held.size());
    const std::int64_t buffer = stock.schedulable - allocated;
    const bool fits = buffer >= capacity.buffer_min && buffer <= capacity.buffer_max;
    const std::int64_t wanted_buffer =
        fits ? buffer : (capacity.buffer_min + capacity.buffer_max) / 2;
    const std::int64_t supply = lacking + updated;
    // An update's pods are gone from the stock already and come back by the supply.
    const std::int64_t desired = std::max(
        allocated + supply + (fits ? wanted_buffer - updated : wanted_buffer), capacity.pool_min);
    const std::int64_t staying = stock.schedulable - updated;
    const std::int64_t at_once = pool.scale.of(desired) - stock.not_ready;
    plan.create = std::max<std::int64_t>(
        std::min({desired - staying, capacity.pool_max - stock.total, at_once}), 0);
    plan.is_full = lacking > 0 && stock.total >= capacity.pool_max;
    std::int64_t surplus = std::max(staying - desired, staying - capacity.pool_max);
    std::int64_t removed = 0;
    for (auto* from : {&stock.waiting, &stock.idle}) {
        for (const PodPointer& pod : *from) {
            if (surplus <= 0) return;
            if (removed++ >= kIdleRemovedAtOnce) return look_again_at(plan, kBetween);
            plan.remove.push_back(pod);
            --surplus;
        }
    }
    if (desired > staying && plan.create == 0) look_again_at(plan, kBetween);
}

kubernetes::PoolFigures figures_of(const Pool& pool, const std::vector<PodPointer>& pods,
                                   const std::string& revision, const Stock& before) {
    kubernetes::PoolFigures figures;
    figures.observed_generation = pool.metadata.generation;
    figures.revision = revision;
    figures.total = before.total;
    figures.allocated = static_cast<std::int64_t>(before.held.size());
    figures.available = static_cast<std::int64_t>(before.idle.size());
    figures.updated = std::ranges::count_if(pods, [&](const PodPointer& pod) {
        return !pod->is_going() && kube::label_of(pod->metadata, label::kPoolRevision) == revision;
    });
    return figures;
}

/// Members in the order of their names, all the way down.
json::value in_order(const json::value& value) {
    if (value.is_array()) {
        json::array list;
        for (const json::value& item : value.get_array())
            list.push_back(in_order(item));
        return list;
    }
    if (!value.is_object()) return value;
    std::map<std::string, json::value> members;
    for (const auto& [name, member] : value.get_object())
        members.emplace(name, in_order(member));
    json::object sorted;
    for (auto& [name, member] : members)
        sorted[name] = std::move(member);
    return sorted;
}

}  // namespace

std::string template_digest(const Pool& pool) {
    constexpr std::size_t kDigits = 16;
    return sha256_hex(json::serialize(in_order(pool.pod_template))).substr(0, kDigits);
}

std::string revision_of(const Pool& pool) {
    const std::string digest = template_digest(pool);
    const auto known =
        pool.metadata.annotations.find(std::string(kubernetes::annotation::kTemplateDigest));
    const bool same = known != pool.metadata.annotations.end() && known->second == digest;
    return same && pool.status && !pool.status->revision.empty() ? pool.status->revision : digest;
}

PoolPlan plan_pool(const Pool& pool, const std::vector<PodPointer>& pods,
                   const std::vector<BatchPointer>& given, const std::string& revision,
                   Timestamp now) {
    PoolPlan plan;
    if (pool.metadata.deletion_time) return plan;
    std::vector<BatchPointer> batches = given;
    std::ranges::sort(batches, [](const BatchPointer& a, const BatchPointer& b) {
        if (a->metadata.creation_time != b->metadata.creation_time)
            return a->metadata.creation_time < b->metadata.creation_time;
        return a->metadata.name < b->metadata.name;
    });
    std::map<std::string, BatchPointer> by_name;
    for (const BatchPointer& batch : batches)
        by_name[batch->metadata.name] = batch;
    const auto whose = holders(batches);
    Stock stock = take_stock(pods, whose);
    plan_litter(stock, whose, by_name, now, plan);
    std::erase_if(stock.waiting, [&](const PodPointer& pod) {
        return std::ranges::find(plan.remove, pod) != plan.remove.end();
    });
    const std::int64_t lacking = plan_grants(batches, stock, plan);
    auto figures = figures_of(pool, pods, revision, stock);
    if (!pool.status || *pool.status != figures) plan.status = std::move(figures);
    const std::int64_t updated = plan_update(pool, revision, stock, plan);
    plan_size(pool, lacking, updated, stock, plan);
    return plan;
}

Result<json::object> pool_pod(const Pool& pool, const std::string& revision) {
    const json::object* from = pool.pod_template.if_object();
    if (!from) return invalid("spec.template: must be a pod template");
    const json::value* spec = json::find(*from, "spec");
    if (!spec || !spec->is_object()) return invalid("spec.template.spec: must be an object");
    const json::value* given = json::find(*from, "metadata");
    json::object metadata = given && given->is_object() ? given->get_object() : json::object();
    for (const char* own : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"})
        metadata.erase(own);
    json::value& labels = metadata["labels"];
    if (!labels.is_object()) labels = json::object();
    labels.get_object()[label::kPoolName] = pool.metadata.name;
    labels.get_object()[label::kPoolRevision] = revision;
    labels.get_object()[label::kClaimable] = "true";
    kube::Owner owner(kube::api_version(kubernetes::kPools), std::string(kubernetes::kPools.kind),
                      pool.metadata.name, pool.metadata.uid, true, true);
    metadata["generateName"] = pool.metadata.name + "-";
    json::array owners;
    owners.emplace_back(kube::write_owner(owner));
    metadata["ownerReferences"] = std::move(owners);
    json::object pod{{"apiVersion", "v1"}, {"kind", "Pod"}};
    pod["metadata"] = std::move(metadata);
    pod["spec"] = *spec;
    return pod;
}

}  // namespace opensandbox::controller
