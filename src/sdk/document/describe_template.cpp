#include "base/clock.hpp"
#include "sdk/document/describe.hpp"

namespace opensandbox::sdk {

namespace {

json::value or_null(const std::optional<std::map<std::string, std::string>>& map) {
    if (!map) return {};
    json::object object;
    for (const auto& [name, value] : *map)
        object[name] = value;
    return object;
}

json::value or_null(const std::optional<std::vector<std::string>>& list) {
    return list ? json::value(json::array(list->begin(), list->end())) : json::value();
}

json::value or_null(const std::optional<std::int64_t>& number) {
    return number ? json::value(*number) : json::value();
}

}  // namespace

json::object describe(const TemplateInfo& info) {
    json::object status;
    status["phase"] = info.phase;
    status["manifest_ref"] = or_null(info.manifest_ref);
    status["message"] = or_null(info.message);
    json::object out;
    out["template_id"] = info.id;
    out["image"] = info.image;
    out["publish"] = info.publish;
    out["format"] = info.format;
    out["status"] = std::move(status);
    out["created_at"] = to_rfc3339(info.created_at);
    out["updated_at"] = to_rfc3339(info.updated_at);
    out["resource_limits"] = or_null(info.resource_limits);
    out["entrypoint"] = or_null(info.entrypoint);
    out["env"] = or_null(info.environment);
    out["metadata"] = or_null(info.metadata);
    out["readiness"] = nullptr;
    if (info.readiness) {
        json::object readiness;
        readiness["probe"] = or_null(info.readiness->probe);
        readiness["warmup_seconds"] = or_null(info.readiness->warmup_seconds);
        out["readiness"] = std::move(readiness);
    }
    return out;
}

json::object describe(const TemplatePage& page) {
    json::array items;
    for (const auto& item : page.items)
        items.emplace_back(describe(item));
    json::object out;
    out["items"] = std::move(items);
    out["pagination"] = describe(page.pagination);
    return out;
}

}  // namespace opensandbox::sdk
