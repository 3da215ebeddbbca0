#include "lifecycle/host/host_lifecycle.hpp"

#include <cctype>

namespace opensandbox::lifecycle {
namespace {

/// What can be said of a sandbox that its backend does not know.
runtime::Inspection from_row(const model::Sandbox& sandbox) {
    runtime::Inspection inspection;
    inspection.object_id = sandbox.id;
    inspection.name = "sandbox-" + sandbox.id;
    inspection.image = sandbox.image_uri;
    for (char c : model::to_string(sandbox.status.state))
        inspection.status += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    inspection.created_at = sandbox.created_at;
    if (sandbox.status.state == model::SandboxState::failed) {
        inspection.error = sandbox.status.message;
    }
    if (sandbox.metadata) inspection.labels = *sandbox.metadata;
    return inspection;
}

}  // namespace

Awaitable<Result<std::string>> HostLifecycle::logs(std::string id, runtime::LogQuery query) {
    if (!index_.find(id)) co_return not_found(id);
    auto text = co_await runtime_.logs(id, query);
    if (text) co_return text;
    if (text.error().code() == ErrorCode::not_found) {
        if (!index_.find(id)) co_return not_found(id);
        co_return std::string();
    }
    if (!text.error().wire().empty()) co_return text;
    co_return Error(ErrorCode::internal, error_code("SANDBOX_QUERY_FAILED"),
                    "logs of sandbox " + id + ": " + text.error().message());
}

Awaitable<Result<std::vector<runtime::SandboxUsage>>> HostLifecycle::usage(std::size_t limit) {
    auto usages = co_await runtime_.usage(limit);
    // Idle ones of pools are nobody's.
    if (usages) {
        std::erase_if(*usages, [&](const auto& item) { return !index_.find(item.id); });
    }
    co_return usages;
}

Awaitable<Result<runtime::Inspection>> HostLifecycle::inspect(std::string id) {
    if (!index_.find(id)) co_return not_found(id);
    auto inspection = co_await runtime_.inspect(id);
    if (inspection) co_return inspection;
    if (inspection.error().code() == ErrorCode::not_found) {
        const auto* entry = index_.find(id);
        if (!entry) co_return not_found(id);
        co_return from_row(entry->record.sandbox);
    }
    if (!inspection.error().wire().empty()) co_return inspection;
    co_return Error(ErrorCode::internal, error_code("SANDBOX_QUERY_FAILED"),
                    "inspection of sandbox " + id + ": " + inspection.error().message());
}

}  // namespace opensandbox::lifecycle
