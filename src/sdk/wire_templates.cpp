#include "sdk/wire_templates.hpp"

#include "json/document.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

std::optional<std::map<std::string, std::string>> optional_map(ObjectReader& in,
                                                               const json::object& from,
                                                               std::string_view name) {
    if (!json::find(from, name)) return std::nullopt;
    return in.string_map(name);
}

Result<TemplateInfo> template_of(const json::object& from) {
    ObjectReader in(from);
    TemplateInfo info;
    info.id = in.string("templateId");
    info.image = in.string("image");
    info.publish = in.string("publish");
    info.format = in.string("format");
    info.created_at = in.time("createdAt");
    info.updated_at = in.time("updatedAt");
    info.resource_limits = optional_map(in, from, "resourceLimits");
    info.environment = optional_map(in, from, "env");
    info.metadata = optional_map(in, from, "metadata");
    if (json::find(from, "entrypoint")) info.entrypoint = in.strings("entrypoint");
    const json::object& status_object = in.object("status");
    const json::object* readiness_object = in.optional_object("readiness");
    if (in.failed()) return in.error();

    ObjectReader status(status_object);
    info.phase = status.string("phase");
    info.manifest_ref = status.optional_string("manifestRef");
    info.message = status.optional_string("message");
    if (status.failed()) return status.error().within("status");
    if (readiness_object) {
        ObjectReader readiness(*readiness_object);
        info.readiness.emplace();
        info.readiness->probe = readiness.optional_string("probe");
        info.readiness->warmup_seconds = readiness.optional_integer("warmupSeconds");
        if (readiness.failed()) return readiness.error().within("readiness");
    }
    return info;
}

Error missing(std::string_view name) {
    return {ErrorCode::invalid_argument, std::string(name) + ": is missing"};
}

}  // namespace

Result<std::string> encode_template(const TemplateRequest& request) {
    if (!request.request_body.empty()) {
        auto body = json::parse(request.request_body);
        if (!body) {
            return Error(ErrorCode::invalid_argument, "request body: " + body.error().message());
        }
        if (!body->is_object()) {
            return Error(ErrorCode::invalid_argument, "request body: must be a JSON object");
        }
        return json::serialize(*body);
    }
    if (request.image.empty()) return missing("image");
    if (request.publish.empty()) return missing("publish");
    json::object body{{"image", request.image}, {"publish", request.publish}};
    if (!request.resource_limits.empty())
        body["resourceLimits"] = json::string_object(request.resource_limits);
    if (!request.entrypoint.empty()) {
        body["entrypoint"] = json::array(request.entrypoint.begin(), request.entrypoint.end());
    }
    if (!request.environment.empty()) body["env"] = json::string_object(request.environment);
    if (!request.metadata.empty()) body["metadata"] = json::string_object(request.metadata);
    if (!request.format.empty()) body["format"] = request.format;
    if (request.readiness) {
        json::object readiness;
        if (request.readiness->probe) readiness["probe"] = *request.readiness->probe;
        if (request.readiness->warmup_seconds) {
            readiness["warmupSeconds"] = *request.readiness->warmup_seconds;
        }
        body["readiness"] = std::move(readiness);
    }
    return json::serialize(body);
}

Result<TemplateInfo> decode_template(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    return template_of(*document);
}

Result<TemplatePage> decode_template_page(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    const json::array& items = in.array("items");
    const json::object& pagination = in.object("pagination");
    if (in.failed()) return in.error();
    TemplatePage page;
    for (const json::value& item : items) {
        if (!item.is_object()) {
            return Error(ErrorCode::protocol, "the answer breaks its format: items: not objects");
        }
        auto info = template_of(item.get_object());
        if (!info) return info.error();
        page.items.push_back(std::move(*info));
    }
    auto read = pagination_of(pagination);
    if (!read) return read.error();
    page.pagination = *read;
    return page;
}

}  // namespace opensandbox::sdk::wire
