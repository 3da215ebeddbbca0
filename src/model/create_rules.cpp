#include "model/create_rules.hpp"

#include "json/document.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::model {
namespace {

bool lower_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_dns_label(std::string_view text) {
    if (text.empty() || !lower_or_digit(text.front()) || !lower_or_digit(text.back())) return false;
    return std::ranges::all_of(text, [](char c) { return lower_or_digit(c) || c == '-'; });
}

bool is_dns_name(std::string_view text) {
    while (true) {
        auto dot = text.find('.');
        if (!is_dns_label(text.substr(0, dot))) return false;
        if (dot == std::string_view::npos) return true;
        text.remove_prefix(dot + 1);
    }
}

bool is_absolute(std::string_view text) {
    return text.starts_with('/');
}

bool is_host_path(std::string_view text) {
    if (text.starts_with('/')) return true;
    bool drive = text.size() >= 3 && ((text[0] | 32) >= 'a' && (text[0] | 32) <= 'z');
    return drive && text[1] == ':' && (text[2] == '\\' || text[2] == '/');
}

/// `^\d+(\.\d+)?(Ki|Mi|Gi|Ti|Pi|Ei)?$`
bool is_storage_size(std::string_view text) {
    for (std::string_view unit : {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}) {
        if (text.ends_with(unit)) {
            text.remove_suffix(2);
            break;
        }
    }
    auto digits = [](std::string_view part) {
        return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    };
    auto dot = text.find('.');
    if (dot == std::string_view::npos) return digits(text);
    return digits(text.substr(0, dot)) && digits(text.substr(dot + 1));
}

bool is_interception_mode(std::string_view text) {
    return text == "all" || text == "credential-bound";
}

bool is_bucket_version(std::string_view text) {
    return text == "1.0" || text == "2.0";
}

/// An address or a network, as far as it differs from a name; egress control reads it whole.
bool looks_like_address(std::string_view text) {
    if (text.starts_with('[')) return false;
    if (std::ranges::count(text, ':') > 1) return true;
    return !text.empty() && text.find_first_not_of("0123456789./ \t") == std::string_view::npos;
}

constexpr TextPattern kDnsLabel{is_dns_label, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"};
constexpr TextPattern kClaimName{
    is_dns_name, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"};
constexpr TextPattern kAbsolute{is_absolute, "^/.*"};
constexpr TextPattern kHostPath{is_host_path, "^(/|[A-Za-z]:[\\\\/])"};
constexpr TextPattern kStorageSize{is_storage_size, "^\\d+(\\.\\d+)?(Ki|Mi|Gi|Ti|Pi|Ei)?$"};
constexpr TextPattern kInterceptionMode{is_interception_mode, "^(all|credential-bound)$"};
constexpr TextPattern kOssfsVersion{is_bucket_version, "^(1\\.0|2\\.0)$"};

using enum FieldKind;

constexpr std::array kImageAuth{
    FieldRule{.name = "username", .required = true},
    FieldRule{.name = "password", .required = true},
};
constexpr std::array kImage{
    FieldRule{.name = "uri", .required = true},
    FieldRule{.name = "auth", .kind = object, .members = kImageAuth},
};
constexpr std::array kPlatform{
    FieldRule{.name = "os", .required = true},
    FieldRule{.name = "arch", .required = true},
};
constexpr std::array kPort{
    FieldRule{.name = "port", .kind = integer, .minimum = 1, .maximum = 65535},
};
constexpr std::array kEgressRule{
    FieldRule{.name = "action", .required = true},
    FieldRule{.name = "target", .minimum = 1},
    FieldRule{
        .name = "ports", .kind = integer_list, .minimum = 1, .maximum = 256, .members = kPort},
};
constexpr std::array kNetworkPolicy{
    FieldRule{.name = "defaultAction"},
    FieldRule{.name = "egress", .kind = object_list, .members = kEgressRule, .closed = true},
};
constexpr std::array kCredentialProxy{
    FieldRule{.name = "enabled", .kind = boolean, .nullable = false},
    FieldRule{.name = "interceptionMode", .pattern = &kInterceptionMode},
};
constexpr std::array kHostVolume{
    FieldRule{.name = "path", .required = true, .pattern = &kHostPath},
};
constexpr std::array kClaimVolume{
    FieldRule{.name = "claimName", .required = true, .maximum = 253, .pattern = &kClaimName},
    FieldRule{.name = "createIfNotExists", .kind = boolean, .nullable = false},
    FieldRule{.name = "deleteOnSandboxTermination", .kind = boolean, .nullable = false},
    FieldRule{.name = "storageClass"},
    FieldRule{.name = "storage", .pattern = &kStorageSize},
    FieldRule{.name = "accessModes", .kind = text_list},
};
constexpr std::array kBucketVolume{
    FieldRule{.name = "bucket", .required = true, .minimum = 3, .maximum = 63},
    FieldRule{.name = "endpoint", .required = true, .minimum = 1},
    FieldRule{.name = "version", .nullable = false, .pattern = &kOssfsVersion},
    FieldRule{.name = "options", .kind = text_list},
    FieldRule{.name = "accessKeyId", .required = true, .minimum = 1},
    FieldRule{.name = "accessKeySecret", .required = true, .minimum = 1},
};
constexpr std::array kVolume{
    FieldRule{.name = "name", .required = true, .maximum = 63, .pattern = &kDnsLabel},
    FieldRule{.name = "mountPath", .required = true, .pattern = &kAbsolute},
    FieldRule{.name = "readOnly", .kind = boolean, .nullable = false},
    FieldRule{.name = "subPath"},
    FieldRule{.name = "createSubPathIfMissing", .kind = boolean, .unserved = "is not served."},
    FieldRule{.name = "host", .kind = object, .members = kHostVolume, .closed = true},
    FieldRule{.name = "pvc", .kind = object, .members = kClaimVolume, .closed = true},
    FieldRule{.name = "ossfs", .kind = object, .members = kBucketVolume, .closed = true},
};
constexpr std::array kPreStart{
    FieldRule{.name = "command", .kind = text_list, .required = true, .minimum = 1},
    FieldRule{.name = "timeoutSeconds",
              .kind = integer,
              .nullable = false,
              .minimum = 1,
              .maximum = 10800},
};
constexpr std::array kPeriodic{
    FieldRule{.name = "name", .required = true, .minimum = 1},
    FieldRule{.name = "schedule", .required = true, .minimum = 1},
    FieldRule{.name = "command", .kind = text_list, .required = true, .minimum = 1},
    FieldRule{
        .name = "timeoutSeconds", .kind = integer, .nullable = false, .minimum = 1, .maximum = 300},
};
constexpr std::array kHooks{
    FieldRule{.name = "idlePolicy",
              .unserved = "is not served: sandboxes are paused and resumed by request only."},
    FieldRule{.name = "preStart", .kind = object, .members = kPreStart, .closed = true},
    FieldRule{.name = "periodic", .kind = object_list, .members = kPeriodic, .closed = true},
};

constexpr std::array kCreateRequest{
    FieldRule{.name = "image", .kind = object, .members = kImage},
    FieldRule{.name = "snapshotId"},
    FieldRule{.name = "templateId"},
    FieldRule{.name = "timeout", .kind = integer, .minimum = 60},
    FieldRule{.name = "resourceLimits", .kind = text_map},
    FieldRule{.name = "resourceRequests", .kind = text_map},
    FieldRule{.name = "env", .kind = nullable_text_map},
    FieldRule{.name = "metadata", .kind = text_map},
    FieldRule{.name = "entrypoint", .kind = text_list, .minimum = 1},
    FieldRule{.name = "networkPolicy", .kind = object, .members = kNetworkPolicy, .closed = true},
    FieldRule{
        .name = "credentialProxy", .kind = object, .members = kCredentialProxy, .closed = true},
    FieldRule{.name = "secureAccess", .kind = boolean, .nullable = false},
    FieldRule{.name = "volumes", .kind = object_list, .members = kVolume, .closed = true},
    FieldRule{.name = "platform", .kind = object, .members = kPlatform},
    FieldRule{.name = "lifecycle", .kind = object, .members = kHooks, .closed = true},
    FieldRule{.name = "extensions", .kind = nullable_text_map},
    FieldRule{.name = "approvalPolicy", .unserved = "is not served: nothing waits for approval."},
    FieldRule{.name = "features", .unserved = "is not served: nothing is added to images."},
    FieldRule{.name = "egress", .unserved = "is not served; networkPolicy has the rules."},
};

}  // namespace

const TextPattern kDnsName = kClaimName;

void check_egress_rules(const json::value& rules, const Location& at, FieldErrors& errors) {
    if (!rules.is_array()) return;
    std::int64_t index = 0;
    for (const json::value& item : rules.get_array()) {
        const Location here = within(at, index++);
        const json::object& rule = item.get_object();
        const auto target = read_text(rule, "target");
        const bool limited = find_field(rule, "ports") != nullptr;
        if (!target && !limited) {
            errors.push_back(value_error(here, "At least one of target and ports must be given.",
                                         json::serialize(item)));
        } else if (target && limited && !looks_like_address(*target)) {
            errors.push_back(value_error(here,
                                         "ports cannot be combined with a name; only an address "
                                         "or a network may have them, without a port of its own.",
                                         json::serialize(item)));
        }
    }
}

std::span<const FieldRule> create_request_rules() {
    return kCreateRequest;
}

std::span<const FieldRule> network_policy_rules() {
    return kNetworkPolicy;
}

std::span<const FieldRule> egress_rule_rules() {
    return kEgressRule;
}

}  // namespace opensandbox::model
