#include "lifecycle/pool_template.hpp"

#include "json/document.hpp"
#include "lifecycle/admission_checks.hpp"

#include <algorithm>

namespace opensandbox::lifecycle {
namespace {

using model::CreateRequest;

const std::vector<std::string> kIdleEntrypoint{"tail", "-f", "/dev/null"};

/// Later entries win.
void overlay(model::StringMap& base, const model::StringMap& over) {
    for (const auto& [key, value] : over) {
        auto at = std::ranges::find(base, key, &model::StringMap::value_type::first);
        if (at == base.end()) {
            base.emplace_back(key, value);
        } else {
            at->second = value;
        }
    }
}

Status check_contents(const CreateRequest& request) {
    if (request.image_auth) {
        return invalid_parameter(
            "template.image.auth: must not be in a template, which is stored; "
            "import or pull the image before.");
    }
    if (request.template_id) return invalid_parameter("template.templateId: not in a template.");
    if (request.timeout_seconds) {
        return invalid_parameter(
            "template.timeout: idle sandboxes do not expire; give it when "
            "one is created.");
    }
    if (!pool_of(request).empty()) {
        return invalid_parameter("template.extensions.poolRef: not in a template.");
    }
    for (const auto& volume : request.volumes) {
        if (model::backend_name(volume) == "ossfs") {
            return invalid_parameter("template.volumes." + volume.name +
                                     ".ossfs: its keys must not be in a template, which is "
                                     "stored.");
        }
    }
    return {};
}

}  // namespace

Result<CreateRequest> parse_template(std::string_view text) {
    auto document = json::parse(text);
    if (!document || !document->is_object()) {
        return invalid_parameter("template: must be an object.");
    }
    json::object& fields = document->get_object();
    auto absent = [&](const char* name, const char* snake) {
        return !fields.contains(name) && !fields.contains(snake);
    };
    if (absent("resourceLimits", "resource_limits")) fields["resourceLimits"] = json::object();
    if (absent("entrypoint", "entrypoint")) fields["entrypoint"] = {"tail", "-f", "/dev/null"};
    auto parsed = model::parse_create_request(json::serialize(*document));
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        return invalid_parameter("template: " + model::to_text(*errors));
    }
    auto& request = std::get<CreateRequest>(parsed);
    if (auto ok = check_contents(request); !ok) return ok.error();
    return std::move(request);
}

Status check_capacity(const model::PoolCapacity& capacity) {
    if (capacity.buffer_min > capacity.buffer_max) {
        return invalid_parameter("capacitySpec: bufferMin must not be above bufferMax.");
    }
    if (capacity.pool_min > capacity.pool_max) {
        return invalid_parameter("capacitySpec: poolMin must not be above poolMax.");
    }
    if (capacity.buffer_min > capacity.pool_max) {
        return invalid_parameter("capacitySpec: bufferMin must not be above poolMax.");
    }
    return {};
}

Result<CreateRequest> apply_template(const CreateRequest& base, const CreateRequest& request) {
    auto refuse = [](std::string_view field) {
        return invalid_parameter(std::string(field) +
                                 ": must not be combined with extensions.poolRef.");
    };
    if (request.network_policy) return refuse("networkPolicy");
    if (request.credential_proxy) return refuse("credentialProxy");
    if (!request.volumes.empty()) return refuse("volumes");
    if (request.secure_access) return refuse("secureAccess");
    if (wants_isolation(request)) {
        return refuse("extensions." + std::string(kIsolationExtension));
    }
    if (request.image && request.image != base.image) {
        return invalid_parameter("image.uri: '" + *request.image +
                                 "' is not the image of the pool" +
                                 (base.image ? " ('" + *base.image + "')." : "."));
    }
    CreateRequest merged = base;
    if (!request.entrypoint.empty() && request.entrypoint != kIdleEntrypoint) {
        merged.entrypoint = request.entrypoint;
    }
    overlay(merged.env, request.env);
    if (request.metadata) {
        if (!merged.metadata) merged.metadata.emplace();
        overlay(*merged.metadata, *request.metadata);
    }
    overlay(merged.extensions, request.extensions);
    std::erase_if(merged.extensions,
                  [](const auto& entry) { return entry.first == kPoolExtension; });
    merged.timeout_seconds = request.timeout_seconds;
    if (request.platform) merged.platform = request.platform;
    return merged;
}

bool fits_idle(const CreateRequest& base, const CreateRequest& request) {
    bool same_program = request.entrypoint.empty() || request.entrypoint == kIdleEntrypoint ||
                        request.entrypoint == base.entrypoint;
    bool same_kind = std::ranges::all_of(request.extensions, [&](const auto& entry) {
        const std::string* there = find_value(base.extensions, entry.first);
        return !entry.first.starts_with(kOwnExtension) || (there && *there == entry.second);
    });
    return same_program && same_kind && std::ranges::all_of(request.env, [&](const auto& entry) {
               const std::string* there = find_value(base.env, entry.first);
               return there && *there == entry.second;
           });
}

}  // namespace opensandbox::lifecycle
