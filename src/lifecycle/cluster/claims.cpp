#include "base/log.hpp"
#include "lifecycle/cluster/birth.hpp"
#include "lifecycle/cluster/cluster_error.hpp"
#include "runtime/kubernetes/names.hpp"

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;
namespace label = kubernetes::label;

}  // namespace

Awaitable<Status> ClusterLifecycle::prepare_claims(Birth& birth) {
    for (auto& wanted : kubernetes::wanted_claims(birth.admitted.spec, settings_.options)) {
        if (auto done = co_await prepare_claim(birth, std::move(wanted)); !done) co_return done;
    }
    co_return Status();
}

/// A claim that is there is used as it is, unless it belongs to another sandbox.
Awaitable<Status> ClusterLifecycle::prepare_claim(Birth& birth, kubernetes::WantedClaim wanted) {
    const kube::ObjectKey key{birth.space, wanted.name};
    auto there = co_await client_.get(kubernetes::kClaims, key);
    if (!there && there.error().code() != ErrorCode::not_found)
        co_return cluster_error(there.error(), "read claim " + wanted.name);
    if (!there && !wanted.create_if_missing) {
        co_return Error(ErrorCode::invalid_argument, "VOLUME::PVC_NOT_FOUND",
                        "pvc.claimName: there is no claim " + wanted.name + " in namespace " +
                            birth.space + ".");
    }
    if (!there) {
        auto made = co_await client_.create(kubernetes::kClaims, birth.space, wanted.manifest);
        if (made) {
            if (wanted.delete_with_sandbox) birth.managed_claims.push_back(wanted.name);
            co_return Status();
        }
        if (made.error().wire() != "AlreadyExists")
            co_return cluster_error(made.error(), "create claim " + wanted.name);
        there = co_await client_.get(kubernetes::kClaims, key);
        if (!there) co_return cluster_error(there.error(), "read claim " + wanted.name);
    }
    auto metadata = kube::read_metadata(*there);
    if (!metadata) co_return cluster_error(metadata.error(), "read claim " + wanted.name);
    const std::string owner = kube::label_of(*metadata, label::kId);
    const bool managed = kube::label_of(*metadata, label::kVolumeManagedBy) == "server";
    if (managed && owner != birth.admitted.spec.id) {
        co_return Error(
            ErrorCode::conflict, error_code("INVALID_STATE"),
            "pvc.claimName: claim " + wanted.name + " goes with sandbox " + owner + ".");
    }
    co_return Status();
}

/// A claim with an owner goes with it also where nobody of us is there to see it go.
Awaitable<void> ClusterLifecycle::hand_over_claims(Birth& birth, kube::Owner owner) {
    for (const std::string& name : birth.managed_claims) {
        json::object metadata;
        metadata["ownerReferences"] = json::array{kube::write_owner(owner)};
        kube::Patch patch;
        json::object content;
        content["metadata"] = std::move(metadata);
        patch.content = std::move(content);
        auto patched = co_await client_.patch(kubernetes::kClaims, {birth.space, name}, patch);
        if (patched) continue;
        log::warn("a claim has no owner; it is removed with its sandbox all the same",
                  {{"claim", name}, {"error", patched.error().message()}});
    }
}

Awaitable<Status> ClusterLifecycle::remove_managed_claims(std::string id, std::string space) {
    kube::ListChoice choice;
    choice.name_space = space;
    choice.label_selector =
        std::string(label::kVolumeManagedBy) + "=server," + std::string(label::kId) + "=" + id;
    auto claims = co_await client_.list_all(kubernetes::kClaims, std::move(choice));
    if (!claims) {
        // Older installations do not let us; then owners do it.
        if (claims.error().code() == ErrorCode::permission_denied) co_return Status();
        co_return claims.error();
    }
    for (const json::value& item : claims->items) {
        if (!item.is_object()) continue;
        auto metadata = kube::read_metadata(item.get_object());
        if (!metadata) continue;
        auto removed = co_await client_.remove(kubernetes::kClaims, {space, metadata->name});
        if (!removed && removed.error().code() != ErrorCode::permission_denied)
            co_return removed.error();
    }
    co_return Status();
}

}  // namespace opensandbox::lifecycle
