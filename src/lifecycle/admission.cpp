#include "lifecycle/admission.hpp"

#include "base/identifier.hpp"
#include "lifecycle/admission_checks.hpp"
#include "lifecycle/transition.hpp"
#include "model/metadata.hpp"

#include <cmath>

namespace opensandbox::lifecycle {
namespace {

using model::CreateRequest;

/// What was found out on the way.
struct Findings {
    std::optional<std::int64_t> renew_seconds;
    std::optional<store::SnapshotRecord> snapshot;
    std::vector<std::string> entrypoint;
    std::optional<Timestamp> expires_at;
    runtime::ResourceLimits limits;
    runtime::NetworkChoice network;
    std::vector<runtime::MemoryVolume> memory_volumes;
    SplitEnv env;
};

Status resolve_snapshot(const CreateRequest& request, const AdmissionRules& rules,
                        const FindSnapshot& find_snapshot, Findings& findings) {
    if (!request.snapshot_id) return {};
    if (!rules.capabilities.snapshots || !find_snapshot) {
        return Error(ErrorCode::unsupported, "SNAPSHOT::NOT_IMPLEMENTED",
                     lacking("snapshotId", rules).message());
    }
    auto found = find_snapshot(*request.snapshot_id);
    if (!found) return found.error();
    findings.snapshot = std::move(found.value());
    return {};
}

/// From hooks to templates: what is refused or taken before the entrypoint is looked at.
Status check_kind(const CreateRequest& request, const AdmissionRules& rules) {
    if (auto ok = check_hooks(request, rules); !ok) return ok;
    if (!pool_of(request).empty()) {
        return Error(ErrorCode::invalid_argument, "SANDBOX::UNSUPPORTED_POOL_REF",
                     lacking("extensions.poolRef", rules).message());
    }
    if (wants_isolation(request) && !rules.capabilities.isolation) {
        return lacking("extensions." + std::string(kIsolationExtension), rules);
    }
    if (request.template_id) {
        return Error(ErrorCode::invalid_argument, rules.error_prefix + "::INVALID_ENTRYPOINT",
                     lacking("templateId", rules).message());
    }
    return {};
}

Status check_network(const CreateRequest& request, const AdmissionRules& rules) {
    if (request.secure_access) return lacking("secureAccess", rules);
    if (request.network_policy && !rules.capabilities.network_policy) {
        return lacking("networkPolicy", rules);
    }
    if (request.credential_proxy && !rules.capabilities.credential_proxy) {
        return lacking("credentialProxy", rules);
    }
    return {};
}

Result<Findings> check(const CreateRequest& request, const AdmissionRules& rules, Timestamp now,
                       const FindSnapshot& find_snapshot) {
    Findings findings;
    auto renew = renew_extension(request);
    if (!renew) return renew.error();
    findings.renew_seconds = renew.value();
    if (auto ok = check_extensions(request); !ok) return ok.error();
    auto resolved = resolve_snapshot(request, rules, find_snapshot, findings);
    if (!resolved) return resolved.error();
    if (auto ok = check_kind(request, rules); !ok) return ok.error();
    findings.entrypoint = request.entrypoint;
    if (findings.snapshot && findings.entrypoint.empty()) {
        findings.entrypoint = {"tail", "-f", "/dev/null"};
    }
    if (auto ok = check_entrypoint(findings.entrypoint, rules); !ok) return ok.error();
    if (auto ok = check_env(request.env); !ok) return ok.error();
    if (request.metadata) {
        if (auto ok = model::check_labels(*request.metadata); !ok) return ok.error();
    }
    if (auto ok = check_platform(request, rules); !ok) return ok.error();
    auto expires_at = expiry(request, rules, now);
    if (!expires_at) return expires_at.error();
    findings.expires_at = expires_at.value();
    if (auto ok = check_network(request, rules); !ok) return ok.error();
    auto limits = check_limits(request.resource_limits, rules);
    if (!limits) return limits.error();
    findings.limits = limits.value();
    auto fine = check_fine_limits(request.resource_limits, rules, findings.limits);
    if (!fine) return fine.error();
    auto network = network_choice(request, rules);
    if (!network) return network.error();
    findings.network = std::move(network.value());
    auto env = split_env(request);
    if (!env) return env.error();
    findings.env = std::move(env.value());
    if (auto ok = check_volumes(request, rules); !ok) return ok.error();
    auto in_memory = memory_volumes(request, rules);
    if (!in_memory) return in_memory.error();
    findings.memory_volumes = std::move(in_memory.value());
    return findings;
}

void fill_spec(const CreateRequest& request, Findings& findings, runtime::SandboxSpec& spec) {
    spec.id = new_uuid();
    spec.agent_token = new_token();
    if (findings.snapshot) {
        spec.snapshot.emplace(findings.snapshot->snapshot.id, findings.snapshot->reference);
    } else {
        spec.image = request.image.value_or("");
        spec.image_auth = request.image_auth;
    }
    spec.entrypoint = std::move(findings.entrypoint);
    spec.env = std::move(findings.env.sandbox);
    spec.env.emplace_back("OPENSANDBOX_ID", spec.id);
    spec.egress_env = std::move(findings.env.egress);
    spec.limits = findings.limits;
    spec.resource_requests = request.resource_requests;
    spec.platform = request.platform;
    spec.volumes = request.volumes;
    spec.memory_volumes = std::move(findings.memory_volumes);
    spec.network = std::move(findings.network);
    spec.network_policy = request.network_policy;
    spec.hooks = request.hooks;
    spec.credential_proxy = request.credential_proxy;
    spec.credential_bound = request.credential_bound;
    spec.isolation = wants_isolation(request);
    spec.metadata = request.metadata.value_or(model::StringMap());
    spec.extensions = shown_extensions(request);
    spec.renew_seconds = findings.renew_seconds;
    spec.expires_at = findings.expires_at;
}

void fill_record(const CreateRequest& request, const Findings& findings,
                 const runtime::SandboxSpec& spec, Timestamp now, store::SandboxRecord& record) {
    model::Sandbox& sandbox = record.sandbox;
    sandbox.id = spec.id;
    sandbox.image_uri = spec.image;
    record.base_image = spec.image;
    if (findings.snapshot) {
        sandbox.snapshot_id = findings.snapshot->snapshot.id;
        record.base_image = findings.snapshot->base_image;
    }
    sandbox.platform = request.platform;
    sandbox.status = starting(now);
    sandbox.metadata = request.metadata;
    sandbox.extensions = spec.extensions;
    sandbox.entrypoint = spec.entrypoint;
    sandbox.expires_at = spec.expires_at;
    sandbox.created_at = now;
    record.agent_token = spec.agent_token;
    record.renew_seconds = spec.renew_seconds;
    record.cpu_millicores = std::llround(spec.limits.cpu_cores * 1000);
    record.memory_bytes = static_cast<std::int64_t>(spec.limits.memory_bytes);
}

std::vector<std::string> warnings_of(const CreateRequest& request, const Findings& findings) {
    std::vector<std::string> warnings;
    if (findings.env.dropped) {
        warnings.emplace_back("OPENSANDBOX_EGRESS_* without networkPolicy: dropped");
    }
    if (request.credential_proxy && request.network_policy &&
        request.network_policy->default_action != "deny") {
        warnings.emplace_back("credentialProxy without networkPolicy.defaultAction deny");
    }
    return warnings;
}

}  // namespace

std::string host_arch() {
#if defined(__aarch64__)
    return "arm64";
#else
    return "amd64";
#endif
}

std::string_view pool_of(const CreateRequest& request) {
    const std::string* pool = find_value(request.extensions, kPoolExtension);
    return pool && !is_blank(*pool) ? std::string_view(*pool) : std::string_view();
}

Result<Admitted> admit(const CreateRequest& request, const AdmissionRules& rules, Timestamp now,
                       const FindSnapshot& find_snapshot) {
    auto findings = check(request, rules, now, find_snapshot);
    if (!findings) return findings.error();
    Admitted admitted;
    admitted.warnings = warnings_of(request, findings.value());
    fill_spec(request, findings.value(), admitted.spec);
    fill_record(request, findings.value(), admitted.spec, now, admitted.record);
    return admitted;
}

}  // namespace opensandbox::lifecycle
