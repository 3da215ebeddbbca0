#include "lifecycle/admission.hpp"

#include "base/identifier.hpp"
#include "lifecycle/transition.hpp"
#include "model/field_rule.hpp"
#include "model/metadata.hpp"
#include "model/resource_quantity.hpp"
#include "model/timestamp.hpp"

#include <algorithm>
#include <set>

namespace opensandbox::lifecycle {
namespace {

using model::CreateRequest;

constexpr std::string_view kRenewExtension = "access.renew.extend.seconds";
constexpr std::string_view kIsolationExtension = "bootstrap.execd.isolation";
constexpr std::string_view kShownExtension = "opensandbox.extensions.";
constexpr std::int64_t kMinRenew = 300;
constexpr std::int64_t kMaxRenew = 86400;
constexpr double kMinCpu = 0.01;
constexpr std::uint64_t kMinMemory = 6ULL << 20;
constexpr std::size_t kMaxArgument = 128 * 1024 - 1;  // the kernel's limit on one exec string

Error invalid(std::string message) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER", std::move(message)};
}

Error lacking(std::string_view field) {
    return invalid(std::string(field) + ": the native runtime does not support it.");
}

const std::string* find(const model::StringMap& map, std::string_view key) {
    auto at = std::ranges::find(map, key, &model::StringMap::value_type::first);
    return at == map.end() ? nullptr : &at->second;
}

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Result<std::optional<std::int64_t>> renew_extension(const CreateRequest& request) {
    const std::string* text = find(request.extensions, kRenewExtension);
    if (!text) return std::optional<std::int64_t>();
    auto seconds = model::lax_integer(std::string_view(*text));
    if (!seconds || *seconds < kMinRenew || *seconds > kMaxRenew) {
        return invalid("extensions." + std::string(kRenewExtension) + ": '" + *text +
                       "' must be a whole number of seconds from 300 to 86400.");
    }
    return seconds;
}

Status check_supported_source(const CreateRequest& request, const AdmissionRules& rules) {
    if (request.snapshot_id) {
        return Error(ErrorCode::unsupported, "SNAPSHOT::NOT_IMPLEMENTED",
                     "snapshotId: the native runtime does not support snapshots.");
    }
    if (request.hooks) return lacking("lifecycle");
    if (const std::string* pool = find(request.extensions, "poolRef"); pool && !is_blank(*pool)) {
        return Error(ErrorCode::invalid_argument, "SANDBOX::UNSUPPORTED_POOL_REF",
                     "extensions.poolRef: the native runtime does not support pools.");
    }
    if (const std::string* isolation = find(request.extensions, kIsolationExtension);
        isolation && *isolation == "enable") {
        return lacking("extensions." + std::string(kIsolationExtension));
    }
    if (request.template_id) {
        return Error(ErrorCode::invalid_argument, rules.error_prefix + "::INVALID_ENTRYPOINT",
                     "templateId: the native runtime does not support templates.");
    }
    return {};
}

Status check_argument(std::string_view what, std::string_view text) {
    if (text.find('\0') != std::string_view::npos) {
        return invalid(std::string(what) + ": must not contain NUL.");
    }
    if (text.size() > kMaxArgument) {
        return invalid(std::string(what) + ": must be shorter than 128 KiB.");
    }
    return {};
}

Status check_entrypoint(const CreateRequest& request, const AdmissionRules& rules) {
    if (request.entrypoint.empty() || is_blank(request.entrypoint.front())) {
        return Error(ErrorCode::invalid_argument, rules.error_prefix + "::INVALID_ENTRYPOINT",
                     "entrypoint: must name a program.");
    }
    for (const std::string& word : request.entrypoint) {
        if (auto checked = check_argument("entrypoint", word); !checked) return checked;
    }
    return {};
}

Status check_env(const CreateRequest& request) {
    for (const auto& [name, value] : request.env) {
        if (name.empty() || name.find('=') != std::string::npos) {
            return invalid("env: name '" + name + "' must not be empty and must not contain '='.");
        }
        auto checked = check_argument("env." + name, name + "=" + value);
        if (!checked) return checked;
    }
    return {};
}

Status check_platform(const CreateRequest& request, const AdmissionRules& rules) {
    if (!request.platform) return {};
    const auto& [os, arch] = *request.platform;
    if (os != "linux" && os != "windows") {
        return invalid("platform.os: '" + os + "' must be linux or windows.");
    }
    if (arch != "amd64" && arch != "arm64") {
        return invalid("platform.arch: '" + arch + "' must be amd64 or arm64.");
    }
    if (os != "linux" || arch != rules.arch) {
        return invalid("platform: this server runs linux/" + rules.arch + " only, not " + os + "/" +
                       arch + ".");
    }
    return {};
}

Result<std::optional<Timestamp>> expiry(const CreateRequest& request, const AdmissionRules& rules,
                                        Timestamp now) {
    if (!request.timeout_seconds) return std::optional<Timestamp>();
    std::int64_t timeout = *request.timeout_seconds;
    if (rules.max_timeout_seconds && timeout > *rules.max_timeout_seconds) {
        return invalid("timeout: " + std::to_string(timeout) + " must not exceed " +
                       std::to_string(*rules.max_timeout_seconds) +
                       " seconds (server.max_sandbox_timeout_seconds).");
    }
    auto room = std::chrono::duration_cast<std::chrono::seconds>(model::latest_timestamp() - now);
    if (timeout > room.count()) {
        return invalid("timeout: " + std::to_string(timeout) + " seconds end past the year 9999.");
    }
    return std::optional<Timestamp>(now + std::chrono::seconds(timeout));
}

Status check_unsupported_features(const CreateRequest& request) {
    if (request.secure_access) return lacking("secureAccess");
    if (request.network_policy) return lacking("networkPolicy");
    if (request.credential_proxy) return lacking("credentialProxy");
    return {};
}

Error bad_limit(std::string_view key, const std::string& value, std::string_view rule) {
    return invalid("Invalid resourceLimits." + std::string(key) + ": '" + value + "'; " +
                   std::string(rule));
}

Result<runtime::ResourceLimits> limits(const CreateRequest& request) {
    runtime::ResourceLimits limits;
    if (const std::string* text = find(request.resource_limits, "cpu")) {
        auto cores = model::parse_cpu(*text);
        if (!cores) return bad_limit("cpu", *text, "must resolve to a positive resource limit.");
        if (*cores < kMinCpu) return bad_limit("cpu", *text, "must be 0.01 cores or more.");
        limits.cpu_cores = *cores;
    }
    if (const std::string* text = find(request.resource_limits, "memory")) {
        auto bytes = model::parse_memory(*text);
        if (!bytes) return bad_limit("memory", *text, "must resolve to a positive resource limit.");
        if (*bytes < kMinMemory) return bad_limit("memory", *text, "must be 6Mi or more.");
        limits.memory_bytes = *bytes;
    }
    if (const std::string* text = find(request.resource_limits, "gpu")) {
        if (!model::parse_gpu(*text)) {
            return bad_limit("gpu", *text, "must be a positive count or all.");
        }
        return bad_limit("gpu", *text, "the native runtime does not support GPUs.");
    }
    return limits;
}

Status check_volumes(const CreateRequest& request) {
    std::set<std::string> names;
    for (const auto& volume : request.volumes) {
        if (!names.insert(volume.name).second) {
            return Error(ErrorCode::invalid_argument, "VOLUME::DUPLICATE_NAME",
                         "volumes: name '" + volume.name + "' is used twice.");
        }
        std::string path = "/" + volume.sub_path + "/";
        if (volume.sub_path.starts_with('/') || path.find("/../") != std::string::npos) {
            return Error(ErrorCode::invalid_argument, "VOLUME::INVALID_SUB_PATH",
                         "volumes." + volume.name + ".subPath: '" + volume.sub_path +
                             "' must be relative and must not contain '..'.");
        }
    }
    if (!request.volumes.empty()) {
        const auto& first = request.volumes.front();
        return lacking("volumes." + first.name + "." + std::string(model::backend_name(first)));
    }
    return {};
}

/// The sidecar's settings never reach the sandbox (lifecycle 6.5); without a policy they are
/// dropped.
model::StringMap sandbox_env(const CreateRequest& request) {
    model::StringMap env;
    for (const auto& entry : request.env) {
        if (!entry.first.starts_with("OPENSANDBOX_EGRESS_")) env.push_back(entry);
    }
    return env;
}

}  // namespace

std::string host_arch() {
#if defined(__aarch64__)
    return "arm64";
#else
    return "amd64";
#endif
}

Result<Admitted> admit(const CreateRequest& request, const AdmissionRules& rules, Timestamp now) {
    auto renew = renew_extension(request);
    if (!renew) return renew.error();
    if (auto ok = check_supported_source(request, rules); !ok) return ok.error();
    if (auto ok = check_entrypoint(request, rules); !ok) return ok.error();
    if (auto ok = check_env(request); !ok) return ok.error();
    if (request.metadata) {
        if (auto ok = model::check_labels(*request.metadata); !ok) return ok.error();
    }
    if (auto ok = check_platform(request, rules); !ok) return ok.error();
    auto expires_at = expiry(request, rules, now);
    if (!expires_at) return expires_at.error();
    if (auto ok = check_unsupported_features(request); !ok) return ok.error();
    auto resources = limits(request);
    if (!resources) return resources.error();
    if (auto ok = check_volumes(request); !ok) return ok.error();

    Admitted admitted;
    runtime::SandboxSpec& spec = admitted.spec;
    spec.id = new_uuid();
    spec.image = request.image.value_or("");
    spec.entrypoint = request.entrypoint;
    spec.env = sandbox_env(request);
    spec.env.emplace_back("OPENSANDBOX_ID", spec.id);
    spec.limits = *resources;
    spec.agent_token = new_token();

    store::SandboxRecord& record = admitted.record;
    record.sandbox.id = spec.id;
    record.sandbox.image_uri = spec.image;
    record.sandbox.platform = request.platform;
    record.sandbox.status = starting(now);
    record.sandbox.metadata = request.metadata;
    for (const auto& entry : request.extensions) {
        if (entry.first.starts_with(kShownExtension)) record.sandbox.extensions.push_back(entry);
    }
    record.sandbox.entrypoint = request.entrypoint;
    record.sandbox.expires_at = *expires_at;
    record.sandbox.created_at = now;
    record.agent_token = spec.agent_token;
    record.renew_seconds = *renew;
    return admitted;
}

}  // namespace opensandbox::lifecycle
