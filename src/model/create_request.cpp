#include "model/create_request.hpp"

#include "json/document.hpp"
#include "model/create_rules.hpp"
#include "model/field_rule.hpp"
#include "model/json_body.hpp"
#include "model/timestamp.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace opensandbox::model {
namespace {

using json::value;

constexpr std::array kRenewRules{
    FieldRule{.name = "expiresAt", .kind = FieldKind::timestamp, .required = true},
};

bool is_blank(std::string_view text) {
    return std::ranges::all_of(text, [](unsigned char c) { return std::isspace(c) != 0; });
}

std::string lowered(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
        text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
        text.remove_suffix(1);
    std::string lower;
    for (char c : text)
        lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower;
}

std::optional<std::string> filled(std::optional<std::string> text) {
    if (text && is_blank(*text)) return std::nullopt;
    return text;
}

const json::object* object_field(const json::object& body, std::string_view name) {
    const value* given = find_field(body, name);
    return given && given->is_object() ? &given->get_object() : nullptr;
}

/// Fields that a template replaces; giving them beside `templateId` is an error.
constexpr std::array<std::string_view, 11> kReplacedByTemplate{
    "credentialProxy", "entrypoint",       "env",          "image",      "lifecycle", "platform",
    "resourceLimits",  "resourceRequests", "secureAccess", "snapshotId", "volumes"};

void check_template(const json::object& body, const Location& at, FieldErrors& errors) {
    std::string conflicts;
    for (std::string_view name : kReplacedByTemplate) {
        const value* given = find_field(body, name);
        if (!given || (name == "secureAccess" && !read_boolean(body, name, false))) continue;
        conflicts += (conflicts.empty() ? "" : ", ") + std::string(name);
    }
    std::string input = json::serialize(value(body));
    if (!conflicts.empty()) {
        errors.push_back(
            value_error(at, "templateId cannot be combined with: " + conflicts + ".", input));
    }
    if (!find_field(body, "timeout")) {
        errors.push_back(value_error(at, "timeout is required with templateId.", input));
    }
}

void check_source(const json::object& body, const CreateRequest& request, const Location& at,
                  FieldErrors& errors) {
    auto pool = std::ranges::find(request.extensions, "poolRef", &StringMap::value_type::first);
    bool pooled = pool != request.extensions.end() && !is_blank(pool->second);
    std::string input = json::serialize(value(body));
    auto refuse = [&](std::string_view message) {
        errors.push_back(value_error(at, message, input));
    };
    if (pooled) {
        if (request.snapshot_id) refuse("snapshotId cannot be combined with extensions.poolRef.");
        if (request.hooks) refuse("lifecycle cannot be combined with extensions.poolRef.");
        return;
    }
    if (request.image.has_value() == request.snapshot_id.has_value()) {
        refuse("Exactly one of image or snapshotId must be provided.");
    } else if (request.image && request.entrypoint.empty()) {
        refuse("Entrypoint is required when image is provided.");
    }
    // Told together with the other rules unless nothing at all was given.
    if (!find_field(body, "resourceLimits") && (request.image || request.snapshot_id) &&
        errors.empty()) {
        refuse("resourceLimits is required; it may be empty.");
    }
}

/// What differs from a field's name by case and separators only.
std::string folded(std::string_view name) {
    std::string plain;
    for (const char c : name) {
        if (c != '_' && c != '-')
            plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return plain;
}

/// Other members of clients are passed over, but not a field in another spelling: what it was to
/// forbid would be allowed.
void check_misspelt(const json::object& body, FieldErrors& errors) {
    for (const auto& [key, item] : body) {
        if (item.is_null()) continue;
        const std::string_view name(key);
        for (const FieldRule& rule : create_request_rules()) {
            if (name == rule.name || name == snake_case(rule.name)) break;
            if (folded(name) != folded(rule.name)) continue;
            Location here{std::string("body"), std::string(name)};
            errors.push_back(value_error(here, "the field is spelt " + std::string(rule.name) + ".",
                                         json_string(name)));
        }
    }
}

void check_volumes(const json::object& body, FieldErrors& errors) {
    const value* list = find_field(body, "volumes");
    if (!list || !list->is_array()) return;
    std::int64_t index = 0;
    for (const value& item : list->get_array()) {
        int backends = 0;
        for (std::string_view backend : {"host", "pvc", "ossfs"})
            backends += find_field(item.get_object(), backend) ? 1 : 0;
        if (backends != 1) {
            Location at{std::string("body"), std::string("volumes"), index};
            errors.push_back(value_error(at, "Exactly one of host, pvc or ossfs must be provided.",
                                         json::serialize(item)));
        }
        ++index;
    }
}

void check_hooks(const json::object& body, FieldErrors& errors) {
    const json::object* hooks = object_field(body, "lifecycle");
    const value* periodic = hooks ? find_field(*hooks, "periodic") : nullptr;
    if (!periodic || !periodic->is_array()) return;
    std::set<std::string> seen;
    for (const value& item : periodic->get_array()) {
        std::string name = read_text(item.get_object(), "name").value_or("");
        Location at{std::string("body"), std::string("lifecycle"), std::string("periodic")};
        if (is_blank(name)) {
            errors.push_back(value_error(at, "name must not be blank.", json::serialize(item)));
        } else if (!seen.insert(name).second) {
            errors.push_back(
                value_error(at, "name '" + name + "' is used twice.", json::serialize(item)));
        }
    }
}

/// Objects of a list field, in order.
std::vector<const json::object*> objects_of(const json::object& body, std::string_view name) {
    std::vector<const json::object*> all;
    const value* list = find_field(body, name);
    if (!list || !list->is_array()) return all;
    for (const value& item : list->get_array())
        all.push_back(&item.get_object());
    return all;
}

std::vector<std::string> command_of(const json::object& hook) {
    return read_list(hook, "command").value_or(std::vector<std::string>());
}

LifecycleHooks read_hooks(const json::object& given) {
    LifecycleHooks hooks;
    if (const json::object* before = object_field(given, "preStart")) {
        hooks.pre_start.emplace();
        hooks.pre_start->command = command_of(*before);
        hooks.pre_start->timeout_seconds = read_integer(*before, "timeoutSeconds");
    }
    for (const json::object* given_hook : objects_of(given, "periodic")) {
        PeriodicHook hook;
        hook.name = read_text(*given_hook, "name").value_or("");
        hook.schedule = read_text(*given_hook, "schedule").value_or("");
        hook.command = command_of(*given_hook);
        hook.timeout_seconds = read_integer(*given_hook, "timeoutSeconds");
        hooks.periodic.push_back(std::move(hook));
    }
    return hooks;
}

ClaimVolume read_claim(const json::object& given) {
    ClaimVolume claim;
    claim.claim_name = read_text(given, "claimName").value_or("");
    claim.create_if_missing = read_boolean(given, "createIfNotExists", true);
    claim.delete_with_sandbox = read_boolean(given, "deleteOnSandboxTermination", false);
    claim.storage_class = read_text(given, "storageClass");
    claim.storage = read_text(given, "storage");
    claim.access_modes = read_list(given, "accessModes").value_or(std::vector<std::string>());
    return claim;
}

BucketVolume read_bucket(const json::object& given) {
    BucketVolume bucket;
    bucket.bucket = read_text(given, "bucket").value_or("");
    bucket.endpoint = read_text(given, "endpoint").value_or("");
    bucket.version = read_text(given, "version").value_or(bucket.version);
    bucket.options = read_list(given, "options").value_or(std::vector<std::string>());
    bucket.access_key_id = read_text(given, "accessKeyId").value_or("");
    bucket.access_key_secret = read_text(given, "accessKeySecret").value_or("");
    return bucket;
}

std::vector<Volume> read_volumes(const json::object& body) {
    std::vector<Volume> volumes;
    for (const json::object* given : objects_of(body, "volumes")) {
        Volume volume;
        volume.name = read_text(*given, "name").value_or("");
        volume.mount_path = read_text(*given, "mountPath").value_or("");
        volume.read_only = read_boolean(*given, "readOnly", false);
        volume.sub_path = read_text(*given, "subPath").value_or("");
        if (const json::object* claim = object_field(*given, "pvc")) {
            volume.backend = read_claim(*claim);
        } else if (const json::object* bucket = object_field(*given, "ossfs")) {
            volume.backend = read_bucket(*bucket);
        } else if (const json::object* host = object_field(*given, "host")) {
            HostVolume path;
            path.path = read_text(*host, "path").value_or("");
            volume.backend = std::move(path);
        }
        volumes.push_back(std::move(volume));
    }
    return volumes;
}

CreateRequest read_fields(const json::object& body) {
    CreateRequest request;
    if (const json::object* image = object_field(body, "image")) {
        request.image = filled(read_text(*image, "uri"));
        if (const json::object* auth = object_field(*image, "auth")) {
            request.image_auth.emplace();
            request.image_auth->username = read_text(*auth, "username").value_or("");
            request.image_auth->password = read_text(*auth, "password").value_or("");
        }
    }
    request.snapshot_id = filled(read_text(body, "snapshotId"));
    request.template_id = filled(read_text(body, "templateId"));
    request.timeout_seconds = read_integer(body, "timeout");
    request.resource_limits = read_map(body, "resourceLimits").value_or(StringMap());
    request.resource_requests = read_map(body, "resourceRequests").value_or(StringMap());
    request.env = read_map(body, "env").value_or(StringMap());
    request.metadata = read_map(body, "metadata");
    request.entrypoint = read_list(body, "entrypoint").value_or(std::vector<std::string>());
    if (const json::object* policy = object_field(body, "networkPolicy")) {
        request.network_policy = read_network_policy(*policy);
    }
    if (const json::object* proxy = object_field(body, "credentialProxy")) {
        request.credential_proxy = read_boolean(*proxy, "enabled", false);
        request.credential_bound = read_text(*proxy, "interceptionMode") == "credential-bound";
    }
    request.secure_access = read_boolean(body, "secureAccess", false);
    if (const json::object* hooks = object_field(body, "lifecycle"))
        request.hooks = read_hooks(*hooks);
    request.volumes = read_volumes(body);
    if (const json::object* platform = object_field(body, "platform")) {
        request.platform = Platform(lowered(read_text(*platform, "os").value_or("")),
                                    lowered(read_text(*platform, "arch").value_or("")));
    }
    if (const json::object* extensions = object_field(body, "extensions")) {
        for (const auto& [key, item] : *extensions) {
            std::string text = item.is_string() ? std::string(item.get_string()) : std::string();
            request.extensions.emplace_back(std::string(key), std::move(text));
        }
    }
    return request;
}

void check_interception_mode(const json::object& body, const CreateRequest& request,
                             const Location& at, FieldErrors& errors) {
    const json::object* proxy = object_field(body, "credentialProxy");
    const auto mode = proxy ? read_text(*proxy, "interceptionMode") : std::nullopt;
    if (!mode || request.credential_proxy) return;
    Location here = within(at, std::string("credentialProxy"));
    here = within(here, std::string("interceptionMode"));
    errors.push_back(value_error(here, "interceptionMode needs credentialProxy.enabled.",
                                 json::serialize(value(*mode))));
}

void split_entrypoint(CreateRequest& request) {
    if (request.entrypoint.size() != 1) return;
    if (request.entrypoint[0].find(' ') == std::string::npos) return;
    if (auto words = shell_split(request.entrypoint[0]); words && !words->empty()) {
        request.entrypoint = std::move(*words);
    }
}

}  // namespace

std::variant<CreateRequest, FieldErrors> parse_create_request(std::string_view text) {
    const Location at{std::string("body")};
    value document;
    FieldErrors errors = parse_body(text, document);
    if (!errors.empty()) return errors;
    check_object(document, create_request_rules(), at, errors);
    if (!errors.empty()) return errors;

    const json::object& body = document.get_object();
    CreateRequest request = read_fields(body);
    if (request.template_id) {
        check_template(body, at, errors);
    } else {
        check_source(body, request, at, errors);
    }
    if (request.credential_proxy && !request.network_policy) {
        errors.push_back(value_error(at, "credentialProxy.enabled needs networkPolicy.",
                                     json::serialize(document)));
    }
    check_interception_mode(body, request, at, errors);
    bool reserved = std::ranges::any_of(
        request.env, [](const auto& entry) { return entry.first == "OPENSANDBOX_LIFECYCLE"; });
    if (reserved) {
        Location here{std::string("body"), std::string("env")};
        errors.push_back(
            value_error(here, "OPENSANDBOX_LIFECYCLE is reserved.", "\"OPENSANDBOX_LIFECYCLE\""));
    }
    if (const json::object* policy = object_field(body, "networkPolicy")) {
        if (const value* rules = find_field(*policy, "egress")) {
            Location here{std::string("body"), std::string("networkPolicy"), std::string("egress")};
            check_egress_rules(*rules, here, errors);
        }
    }
    check_misspelt(body, errors);
    check_volumes(body, errors);
    check_hooks(body, errors);
    if (!errors.empty()) return errors;
    split_entrypoint(request);
    return request;
}

std::variant<Timestamp, FieldErrors> parse_renew_request(std::string_view text) {
    value document;
    FieldErrors errors = parse_body(text, document);
    if (!errors.empty()) return errors;
    check_object(document, kRenewRules, Location{std::string("body")}, errors);
    if (!errors.empty()) return errors;
    const value& given = *find_field(document.get_object(), "expiresAt");
    std::string why;
    auto at = given.is_string() ? parse_timestamp(given.get_string(), why)
                                : timestamp_from_number(given.to_number<double>(), why);
    return *at;
}

}  // namespace opensandbox::model
