#include "json/document.hpp"
#include "sdk/fields/page.hpp"
#include "sdk/fields/template.hpp"
#include "sdk/wire.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

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
    return decode_document<TemplateInfo>(body, fields::kTemplateMembers);
}

Result<TemplatePage> decode_template_page(std::string_view body) {
    return decode_document<TemplatePage>(body, fields::page_members(fields::kTemplateMembers));
}

}  // namespace opensandbox::sdk::wire
