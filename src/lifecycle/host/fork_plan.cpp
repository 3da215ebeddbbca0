#include "lifecycle/host/fork_plan.hpp"

#include "lifecycle/admission_checks.hpp"

#include <algorithm>

namespace opensandbox::lifecycle {
namespace {

void put(model::StringMap& into, const std::string& name, const std::string& value) {
    auto found = std::ranges::find(into, name, [](const auto& item) { return item.first; });
    if (found == into.end()) {
        into.emplace_back(name, value);
    } else {
        found->second = value;
    }
}

/// What would be asked for to get a sandbox like the source.
model::CreateRequest request_for(const store::SandboxRecord& source,
                                 const model::ForkRequest& request, const std::string& fork_id) {
    model::CreateRequest wanted;
    wanted.snapshot_id = fork_id;
    if (request.life == model::ForkLife::timeout) wanted.timeout_seconds = request.timeout_seconds;
    if (source.cpu_millicores > 0) {
        wanted.resource_limits.emplace_back("cpu", std::to_string(source.cpu_millicores) + "m");
    }
    if (source.memory_bytes > 0) {
        wanted.resource_limits.emplace_back("memory", std::to_string(source.memory_bytes));
    }
    wanted.env = request.env;
    wanted.metadata = source.sandbox.metadata;
    if (!request.metadata.empty() && !wanted.metadata) wanted.metadata.emplace();
    for (const auto& [name, value] : request.metadata)
        put(*wanted.metadata, name, value);
    wanted.entrypoint = request.entrypoint.empty() ? source.sandbox.entrypoint : request.entrypoint;
    wanted.extensions = source.sandbox.extensions;
    put(wanted.extensions, std::string(kForkedFrom), source.sandbox.id);
    if (source.renew_seconds) {
        put(wanted.extensions, std::string(kRenewExtension), std::to_string(*source.renew_seconds));
    }
    wanted.platform = source.sandbox.platform;
    return wanted;
}

}  // namespace

Result<std::vector<Admitted>> plan_fork(const store::SandboxRecord& source,
                                        const model::ForkRequest& request,
                                        const AdmissionRules& rules, const std::string& fork_id,
                                        Timestamp now) {
    const model::CreateRequest wanted = request_for(source, request, fork_id);
    const FindSnapshot base = [&](const std::string& id) -> Result<store::SnapshotRecord> {
        store::SnapshotRecord record;
        record.snapshot.id = id;
        record.base_image = source.base_image;
        return record;
    };
    std::vector<Admitted> children;
    for (std::int64_t i = 0; i < request.count; ++i) {
        auto admitted = admit(wanted, rules, now, base);
        if (!admitted) return admitted.error();
        store::SandboxRecord& record = admitted->record;
        record.tenant = source.tenant;
        admitted->spec.tenant = source.tenant;
        record.sandbox.image_uri = source.sandbox.image_uri;
        record.sandbox.snapshot_id = source.sandbox.snapshot_id;
        if (request.life == model::ForkLife::as_source) {
            record.sandbox.expires_at = source.sandbox.expires_at;
            admitted->spec.expires_at = source.sandbox.expires_at;
        }
        children.push_back(std::move(admitted.value()));
    }
    return children;
}

}  // namespace opensandbox::lifecycle
