#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "lifecycle/cluster/cluster_error.hpp"
#include "lifecycle/cluster/cluster_lifecycle.hpp"
#include "runtime/kubernetes/names.hpp"

namespace opensandbox::lifecycle {
namespace {

namespace kubernetes = runtime::kubernetes;

/// For the watch to tell that a sandbox is gone: lists of this server then agree.
constexpr std::chrono::seconds kForTheWatch{1};

Error unsupported(std::string_view what) {
    return {ErrorCode::unsupported, "SANDBOX::API_NOT_SUPPORTED",
            std::string(what) + " is not supported by the kubernetes runtime of this server."};
}

}  // namespace

/// A merge patch of the object, whose answer is what we know of it from then on.
Awaitable<Result<ClusterLifecycle::Batches::Pointer>> ClusterLifecycle::patch_batch(
    std::string id, json::object content, std::string action) {
    const auto batch = find_batch(id);
    if (!batch) co_return not_found(id);
    kube::Patch patch;
    patch.content = std::move(content);
    auto answer = co_await client_.patch(kubernetes::kBatchSandboxes,
                                         {batch->metadata.name_space, batch->metadata.name}, patch);
    if (!answer && answer.error().code() == ErrorCode::not_found) co_return not_found(id);
    if (!answer) co_return cluster_error(answer.error(), action);
    auto stored = batches_.store(*answer);
    if (!stored) co_return cluster_error(stored.error(), action);
    co_return *stored;
}

Awaitable<Result<Timestamp>> ClusterLifecycle::set_expiry(std::string id, Timestamp expires_at) {
    json::object spec{{"expireTime", to_rfc3339(expires_at)}};
    json::object content;
    content["spec"] = std::move(spec);
    auto patched = co_await patch_batch(std::move(id), std::move(content), "renew sandbox");
    if (!patched) co_return patched.error();
    co_return (*patched)->expires_at.value_or(expires_at);
}

Awaitable<Result<Timestamp>> ClusterLifecycle::renew(std::string id, Timestamp expires_at) {
    if (auto may = check_renewal(id, expires_at); !may) co_return may.error();
    co_return co_await set_expiry(std::move(id), expires_at);
}

Awaitable<Result<Timestamp>> ClusterLifecycle::extend(std::string id, std::chrono::seconds by) {
    if (auto may = check_extension(id); !may) co_return may.error();
    const Timestamp held = *index_.find(id)->record.sandbox.expires_at;
    const Timestamp wanted = now() + by;
    if (wanted <= held) co_return held;
    co_return co_await set_expiry(std::move(id), wanted);
}

Awaitable<Result<std::string>> ClusterLifecycle::patch_metadata(std::string id,
                                                                model::MetadataPatch patch) {
    const auto* entry = index_.find(id);
    if (!entry) co_return not_found(id);
    // The rules of what is set; the API server merges.
    auto merged = model::apply(patch, entry->record.sandbox.metadata.value_or(model::StringMap()));
    if (!merged) co_return merged.error();
    json::object labels;
    for (const auto& [name, value] : patch)
        labels[name] = value ? json::value(*value) : json::value(nullptr);
    json::object metadata;
    metadata["labels"] = std::move(labels);
    json::object content;
    content["metadata"] = std::move(metadata);
    auto patched = co_await patch_batch(id, std::move(content), "patch metadata");
    if (!patched) co_return patched.error();
    entry = index_.find(id);
    if (!entry) co_return not_found(id);
    co_return entry->json;
}

Awaitable<Status> ClusterLifecycle::remove(std::string id) {
    const auto batch = find_batch(id);
    if (!batch) co_return not_found(id);
    ++busy_;
    ScopeExit leave([this] { --busy_; });
    ChangeBoard::Watch news(changes_, id);
    const std::string space = batch->metadata.name_space;
    kube::Deletion deletion;
    deletion.uid = batch->metadata.uid;
    deletion.propagation = "Background";
    auto removed = co_await client_.remove(kubernetes::kBatchSandboxes,
                                           {space, batch->metadata.name}, deletion);
    if (!removed && removed.error().code() != ErrorCode::conflict)
        co_return cluster_error(removed.error(), "delete sandbox");
    auto claims = co_await remove_managed_claims(id, space);
    if (!claims) co_return cluster_error(claims.error(), "delete claims of the sandbox");
    const auto until = std::chrono::steady_clock::now() + kForTheWatch;
    while (find_batch(id)) {
        const auto left = until - std::chrono::steady_clock::now();
        if (left <= std::chrono::seconds(0) || !co_await news.wait_for(left)) break;
    }
    log::info("sandbox removed", {{"sandbox", id}});
    co_return Status();
}

Awaitable<Status> ClusterLifecycle::pause(std::string id) {
    if (!find_batch(id)) co_return not_found(id);
    co_return unsupported("pause");
}

Awaitable<Status> ClusterLifecycle::resume(std::string id) {
    if (!find_batch(id)) co_return not_found(id);
    co_return unsupported("resume");
}

Awaitable<Result<std::vector<std::string>>> ClusterLifecycle::fork(std::string id,
                                                                   model::ForkRequest, Requester) {
    if (!find_batch(id)) co_return not_found(id);
    co_return unsupported("fork");
}

}  // namespace opensandbox::lifecycle
