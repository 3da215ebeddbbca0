#include "runtime/docker/labels.hpp"

#include "json/document.hpp"
#include "runtime/docker/names.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::string_view kExtensionKey = "opensandbox.extensions.";
/// Labels that engines, builders and desktops write; never the user's (lifecycle 2.5).
constexpr std::array<std::string_view, 4> kForeign{kLabelPrefix, "org.opencontainers.image.",
                                                   "com.docker.", "desktop.docker."};

void set(StringMap& labels, std::string_view key, std::string value) {
    auto at = std::ranges::find(labels, key, &StringMap::value_type::first);
    if (at != labels.end()) {
        at->second = std::move(value);
    } else {
        labels.emplace_back(std::string(key), std::move(value));
    }
}

std::string json_list(const std::vector<std::string>& list) {
    json::array array;
    for (const std::string& item : list)
        array.emplace_back(item);
    return json::serialize(json::value(std::move(array)));
}

std::vector<std::string> parse_list(const std::string& text) {
    std::vector<std::string> list;
    auto document = json::parse(text);
    if (!document || !document->is_array()) return list;
    for (const auto& item : document->get_array()) {
        if (item.is_string()) list.emplace_back(item.get_string());
    }
    return list;
}

template <class Number>
std::optional<Number> parse_number(const std::string& text) {
    Number number{};
    const char* end = text.data() + text.size();
    auto [stop, problem] = std::from_chars(text.data(), end, number);
    if (problem != std::errc() || stop != end) return std::nullopt;
    return number;
}

/// The reserved labels, all of them beginning with kLabelPrefix.
void read_reserved(std::string_view key, const std::string& value, LabelledSandbox& out,
                   model::Platform& platform) {
    if (key == label::kId) out.id = value;
    if (key == label::kServer) out.server = value;
    if (key == label::kManualCleanup) out.manual_cleanup = value == "true";
    if (key == label::kExpiresAt) out.expires_at = parse_rfc3339(value);
    if (key == label::kPlatformOs) platform.os = value;
    if (key == label::kPlatformArch) platform.arch = value;
    if (key == label::kSnapshotId) out.snapshot_id = value;
    if (key == label::kRenewSeconds) out.renew_seconds = parse_number<std::int64_t>(value);
    if (key == label::kAgentPort) {
        out.agent_port = parse_number<std::uint16_t>(value).value_or(std::uint16_t{0});
    }
    if (key == label::kHttpPort) {
        out.http_port = parse_number<std::uint16_t>(value).value_or(std::uint16_t{0});
    }
    if (key == label::kEgressPort) {
        out.egress_port = parse_number<std::uint16_t>(value).value_or(std::uint16_t{0});
    }
    if (key == label::kEgressToken) out.egress_token = value;
    if (key == label::kVolumeManagedBy) out.managed_volumes = parse_list(value);
    if (key == label::kBucketMounts) out.bucket_mounts = parse_list(value);
    if (key.starts_with(label::kExtensions)) {
        out.extensions.emplace_back(
            std::string(kExtensionKey) + std::string(key.substr(label::kExtensions.size())), value);
    }
}

}  // namespace

std::string label_time(Timestamp at) {
    std::string text = to_rfc3339(at);
    text.pop_back();  // Z
    if (text.find('.') == std::string::npos) text += ".000000";
    return text + "+00:00";
}

StringMap make_labels(const SandboxSpec& spec, const ContainerFacts& facts) {
    StringMap labels;
    for (const auto& [key, value] : facts.image_labels) {
        if (key.starts_with(kLabelPrefix)) set(labels, key, "");
    }
    for (const auto& [key, value] : spec.metadata)
        set(labels, key, value);
    set(labels, label::kId, spec.id);
    set(labels, label::kServer, facts.server_id);
    if (spec.expires_at) {
        set(labels, label::kExpiresAt, label_time(*spec.expires_at));
    } else {
        set(labels, label::kManualCleanup, "true");
    }
    if (spec.platform) {
        set(labels, label::kPlatformOs, spec.platform->os);
        set(labels, label::kPlatformArch, spec.platform->arch);
    }
    if (spec.snapshot) set(labels, label::kSnapshotId, spec.snapshot->id);
    if (spec.renew_seconds) set(labels, label::kRenewSeconds, std::to_string(*spec.renew_seconds));
    for (const auto& [key, value] : spec.extensions) {
        if (!key.starts_with(kExtensionKey)) continue;
        set(labels, std::string(label::kExtensions) + key.substr(kExtensionKey.size()), value);
    }
    if (facts.agent_port != 0) set(labels, label::kAgentPort, std::to_string(facts.agent_port));
    if (facts.http_port != 0) set(labels, label::kHttpPort, std::to_string(facts.http_port));
    if (!facts.egress_token.empty()) set(labels, label::kEgressToken, facts.egress_token);
    if (facts.egress_port != 0) set(labels, label::kEgressPort, std::to_string(facts.egress_port));
    if (!facts.managed_volumes.empty()) {
        set(labels, label::kVolumeManagedBy, json_list(facts.managed_volumes));
    }
    if (!facts.bucket_mounts.empty()) {
        set(labels, label::kBucketMounts, json_list(facts.bucket_mounts));
    }
    return labels;
}

LabelledSandbox read_labels(const StringMap& labels) {
    LabelledSandbox out;
    model::Platform platform;
    for (const auto& [key, value] : labels) {
        if (key.starts_with(kLabelPrefix)) {
            if (!value.empty()) read_reserved(key, value, out, platform);
        } else if (std::ranges::none_of(kForeign, [&](std::string_view prefix) {
                       return key.starts_with(prefix);
                   })) {
            out.metadata.emplace_back(key, value);
        }
    }
    if (!platform.os.empty() && !platform.arch.empty()) out.platform = platform;
    return out;
}

StringMap without_secrets(StringMap labels) {
    for (auto& [key, value] : labels) {
        if (key == label::kEgressToken && !value.empty()) value = "***";
    }
    return labels;
}

}  // namespace opensandbox::runtime::docker
