#include "lifecycle/admission_checks.hpp"

#include "model/field_rule.hpp"
#include "model/resource_limits.hpp"
#include "model/timestamp.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace opensandbox::lifecycle {
namespace {

using model::CreateRequest;

constexpr std::int64_t kMinRenew = 300;
constexpr std::int64_t kMaxRenew = 86400;
constexpr double kMinCpu = 0.01;
constexpr std::size_t kMaxArgument = 128 * 1024 - 1;  // the kernel's limit on one exec string

std::string runtime_name(const AdmissionRules& rules) {
    std::string name;
    for (char c : rules.error_prefix)
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name;
}

Error bad_limit(std::string_view key, const std::string& value, std::string_view rule) {
    return invalid_parameter("Invalid resourceLimits." + std::string(key) + ": '" + value + "'; " +
                             std::string(rule));
}

Status check_command(std::string_view what, const std::vector<std::string>& command) {
    for (const std::string& word : command) {
        if (auto checked = check_argument(what, word); !checked) return checked;
    }
    return {};
}

constexpr std::array kOwnExtensions{kNetworkExtension, kHostnameExtension, kPublishExtension,
                                    kMemoryExtension};

}  // namespace

Error invalid_parameter(std::string message) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER", std::move(message)};
}

Error lacking(std::string_view field, const AdmissionRules& rules) {
    return invalid_parameter(std::string(field) + ": the " + runtime_name(rules) +
                             " runtime does not support it as this server is configured.");
}

const std::string* find_value(const model::StringMap& map, std::string_view key) {
    auto at = std::ranges::find(map, key, &model::StringMap::value_type::first);
    return at == map.end() ? nullptr : &at->second;
}

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Result<std::optional<std::int64_t>> renew_extension(const CreateRequest& request) {
    const std::string* text = find_value(request.extensions, kRenewExtension);
    if (!text) return std::optional<std::int64_t>();
    auto seconds = model::lax_integer(std::string_view(*text));
    if (!seconds || *seconds < kMinRenew || *seconds > kMaxRenew) {
        return invalid_parameter("extensions." + std::string(kRenewExtension) + ": '" + *text +
                                 "' must be a whole number of seconds from 300 to 86400.");
    }
    return seconds;
}

model::StringMap shown_extensions(const CreateRequest& request) {
    model::StringMap shown;
    for (const auto& entry : request.extensions) {
        if (entry.first.starts_with(kShownExtension)) shown.push_back(entry);
    }
    return shown;
}

bool wants_isolation(const CreateRequest& request) {
    const std::string* isolation = find_value(request.extensions, kIsolationExtension);
    return isolation && *isolation == "enable";
}

Status check_extensions(const CreateRequest& request) {
    const std::string* isolation = find_value(request.extensions, kIsolationExtension);
    if (isolation && *isolation != "enable" && !is_blank(*isolation)) {
        return invalid_parameter("extensions." + std::string(kIsolationExtension) + ": '" +
                                 *isolation + "' must be enable.");
    }
    for (const auto& [key, value] : request.extensions) {
        if (!key.starts_with(kOwnExtension)) continue;
        if (std::ranges::find(kOwnExtensions, std::string_view(key)) != kOwnExtensions.end())
            continue;
        return invalid_parameter("extensions." + key + ": there is no such extension.");
    }
    return {};
}

Status check_argument(std::string_view what, std::string_view text) {
    if (text.find('\0') != std::string_view::npos) {
        return invalid_parameter(std::string(what) + ": must not contain NUL.");
    }
    if (text.size() > kMaxArgument) {
        return invalid_parameter(std::string(what) + ": must be shorter than 128 KiB.");
    }
    return {};
}

Status check_hooks(const CreateRequest& request, const AdmissionRules& rules) {
    if (!request.hooks) return {};
    if (!rules.capabilities.hooks) return lacking("lifecycle", rules);
    if (const auto& before = request.hooks->pre_start) {
        if (auto ok = check_command("lifecycle.preStart.command", before->command); !ok) return ok;
    }
    for (const auto& hook : request.hooks->periodic) {
        auto ok = check_command("lifecycle.periodic." + hook.name + ".command", hook.command);
        if (!ok) return ok;
    }
    return {};
}

Status check_entrypoint(const std::vector<std::string>& entrypoint, const AdmissionRules& rules) {
    if (entrypoint.empty() || is_blank(entrypoint.front())) {
        return Error(ErrorCode::invalid_argument, rules.error_prefix + "::INVALID_ENTRYPOINT",
                     "entrypoint: must name a program.");
    }
    return check_command("entrypoint", entrypoint);
}

Status check_env(const model::StringMap& env) {
    for (const auto& [name, value] : env) {
        if (name.empty() || name.find('=') != std::string::npos) {
            return invalid_parameter("env: name '" + name +
                                     "' must not be empty and must not contain '='.");
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
        return invalid_parameter("platform.os: '" + os + "' must be linux or windows.");
    }
    if (arch != "amd64" && arch != "arm64") {
        return invalid_parameter("platform.arch: '" + arch + "' must be amd64 or arm64.");
    }
    bool own = os == "linux" && arch == rules.arch;
    if (!own && !rules.capabilities.foreign_platforms) {
        return invalid_parameter("platform: this server runs linux/" + rules.arch + " only, not " +
                                 os + "/" + arch + ".");
    }
    return {};
}

Result<std::optional<Timestamp>> expiry(const CreateRequest& request, const AdmissionRules& rules,
                                        Timestamp now) {
    if (!request.timeout_seconds) return std::optional<Timestamp>();
    std::int64_t timeout = *request.timeout_seconds;
    if (rules.max_timeout_seconds && timeout > *rules.max_timeout_seconds) {
        return invalid_parameter("timeout: " + std::to_string(timeout) + " must not exceed " +
                                 std::to_string(*rules.max_timeout_seconds) +
                                 " seconds (server.max_sandbox_timeout_seconds).");
    }
    auto room = std::chrono::duration_cast<std::chrono::seconds>(model::latest_timestamp() - now);
    if (timeout > room.count()) {
        return invalid_parameter("timeout: " + std::to_string(timeout) +
                                 " seconds end past the year 9999.");
    }
    return std::optional<Timestamp>(now + std::chrono::seconds(timeout));
}

Result<runtime::ResourceLimits> check_limits(const model::StringMap& wanted,
                                             const AdmissionRules& rules) {
    runtime::ResourceLimits limits;
    if (const std::string* text = find_value(wanted, "cpu")) {
        auto cores = model::parse_cpu(*text);
        if (!cores) return bad_limit("cpu", *text, "must resolve to a positive resource limit.");
        if (*cores < kMinCpu) return bad_limit("cpu", *text, "must be 0.01 cores or more.");
        if (*cores > model::kMostCores)
            return bad_limit("cpu", *text, "must be 1000000 cores or fewer.");
        limits.cpu_cores = *cores;
    }
    if (const std::string* text = find_value(wanted, "memory")) {
        auto bytes = model::parse_memory(*text);
        if (!bytes) return bad_limit("memory", *text, "must resolve to a positive resource limit.");
        const model::LimitRow& row = model::limit_row(&runtime::ResourceLimits::memory_bytes);
        if (*bytes < row.least) {
            return bad_limit("memory", *text,
                             "must be " + model::limit_text(row, row.least) + " or more.");
        }
        if (*bytes > row.most) {
            return bad_limit("memory", *text,
                             "must be " + model::limit_text(row, row.most) + " or less.");
        }
        limits.memory_bytes = *bytes;
    }
    if (const std::string* text = find_value(wanted, "gpu")) {
        auto count = model::parse_gpu(*text);
        if (!count) return bad_limit("gpu", *text, "must be a positive count or all.");
        if (*count > model::kMostGpus) return bad_limit("gpu", *text, "must be 65536 or fewer.");
        if (!rules.capabilities.gpus) {
            return bad_limit("gpu", *text,
                             "the " + runtime_name(rules) + " runtime does not support GPUs.");
        }
        limits.gpus = *count;
    }
    return limits;
}

}  // namespace opensandbox::lifecycle
