#include "http/message.hpp"
#include "json/document.hpp"
#include "sdk/fields/diagnostics.hpp"
#include "sdk/fields/endpoint.hpp"
#include "sdk/fields/page.hpp"
#include "sdk/fields/sandbox.hpp"
#include "sdk/wire.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

/// Text that a caller handed in as JSON of the given kind.
Result<json::value> embedded(std::string_view what, std::string_view text, bool object) {
    auto document = json::parse(text);
    if (!document) {
        return Error(ErrorCode::invalid_argument,
                     std::string(what) + ": " + document.error().message());
    }
    if (object ? !document->is_object() : !document->is_array()) {
        return Error(ErrorCode::invalid_argument,
                     std::string(what) + ": must be a JSON " + (object ? "object" : "array"));
    }
    return std::move(*document);
}

}  // namespace

Result<std::string> encode_create(const CreateOptions& options) {
    if (!options.request_body.empty()) {
        auto body = embedded("request body", options.request_body, true);
        if (!body) return body.error();
        return json::serialize(*body);
    }
    json::object body;
    if (!options.image.empty()) {
        json::object image{{"uri", options.image}};
        if (options.image_auth) {
            image["auth"] = json::object{{"username", options.image_auth->username},
                                         {"password", options.image_auth->password}};
        }
        body["image"] = std::move(image);
    }
    if (!options.snapshot_id.empty()) body["snapshotId"] = options.snapshot_id;
    const bool from_template = !options.template_id.empty();
    if (from_template) body["templateId"] = options.template_id;
    if (options.timeout) {
        body["timeout"] = options.timeout->count();
    } else {
        body["timeout"] = nullptr;
    }
    if (!from_template) {
        // A template brings all of these with it and the contract forbids sending them.
        body["resourceLimits"] = json::string_object(options.resource_limits);
        body["entrypoint"] = json::string_array(options.entrypoint);
        if (!options.environment.empty()) body["env"] = json::string_object(options.environment);
    }
    if (!options.metadata.empty()) body["metadata"] = json::string_object(options.metadata);
    if (!options.extensions.empty()) body["extensions"] = json::string_object(options.extensions);
    if (!options.network_policy.empty()) {
        auto policy = embedded("network policy", options.network_policy, true);
        if (!policy) return policy.error();
        body["networkPolicy"] = std::move(*policy);
    }
    if (!options.volumes.empty()) {
        auto volumes = embedded("volumes", options.volumes, false);
        if (!volumes) return volumes.error();
        body["volumes"] = std::move(*volumes);
    }
    if (options.credential_proxy) {
        json::object proxy{{"enabled", true}};
        if (!options.interception_mode.empty()) {
            proxy["interceptionMode"] = options.interception_mode;
        }
        body["credentialProxy"] = std::move(proxy);
    }
    return json::serialize(body);
}

std::string encode_expiry(TimePoint at) {
    return json::serialize(json::object{{"expiresAt", to_rfc3339(at)}});
}

std::string encode_metadata_patch(
    const std::map<std::string, std::optional<std::string>>& changes) {
    json::object body;
    for (const auto& [key, value] : changes) {
        if (value) {
            body[key] = *value;
        } else {
            body[key] = nullptr;
        }
    }
    return json::serialize(body);
}

std::string encode_metadata_filter(const std::map<std::string, std::string>& metadata) {
    std::string filter;
    for (const auto& [key, value] : metadata) {
        if (!filter.empty()) filter += '&';
        filter += http::percent_encode(key) + "=" + http::percent_encode(value);
    }
    return filter;
}

Result<std::string> decode_created_id(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    std::string id = in.string("id");
    if (id.empty()) in.fail("id", "is empty");
    if (in.failed()) return in.error();
    return id;
}

namespace {

/// Empty when it says none.
Result<std::string> decode_created_mode(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    const json::object* proxy = in.optional_object("credentialProxy");
    if (in.failed()) return in.error();
    if (!proxy) return std::string();
    ObjectReader reader(*proxy);
    std::string mode = reader.optional_string("interceptionMode").value_or("");
    if (reader.failed()) return reader.error().within("credentialProxy");
    return mode;
}

}  // namespace

Status check_interception_mode(const std::string& wanted, std::string_view created) {
    if (wanted.empty()) return {};
    auto mode = decode_created_mode(created);
    if (!mode) return mode.error();
    // A server that says nothing intercepts all, as they did before there was a choice.
    const std::string effective = mode->empty() ? "all" : *mode;
    if (effective == wanted) return {};
    return Error(ErrorCode::unsupported, 0, "INTERCEPTION_MODE_MISMATCH",
                 "interception mode " + wanted + " was asked for, the server says " +
                     (mode->empty() ? std::string("nothing") : *mode),
                 "");
}

Result<SandboxInfo> decode_sandbox(std::string_view body) {
    return decode_document<SandboxInfo>(body, fields::kSandboxMembers);
}

Result<SandboxPage> decode_sandbox_page(std::string_view body) {
    return decode_document<SandboxPage>(body, fields::page_members(fields::kSandboxMembers));
}

std::string encode_fork(const ForkOptions& options) {
    json::object body{{"count", options.count}};
    if (options.no_timeout) {
        body["timeout"] = nullptr;
    } else if (options.timeout) {
        body["timeout"] = options.timeout->count();
    }
    if (!options.environment.empty()) body["env"] = json::string_object(options.environment);
    if (!options.metadata.empty()) body["metadata"] = json::string_object(options.metadata);
    if (!options.entrypoint.empty()) body["entrypoint"] = json::string_array(options.entrypoint);
    return json::serialize(body);
}

Result<std::vector<SandboxInfo>> decode_forks(std::string_view body) {
    return decode_documents<SandboxInfo>(body, "items", fields::kSandboxMembers);
}

Result<TimePoint> decode_expiry(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    TimePoint at = in.time("expiresAt");
    if (in.failed()) return in.error();
    return at;
}

Result<Endpoint> decode_endpoint(std::string_view body) {
    return decode_document<Endpoint>(body, fields::kEndpointMembers);
}

Result<std::string> decode_version(std::string_view body) {
    auto document = parse_object(body);
    if (!document) return document.error();
    ObjectReader in(*document);
    std::string version = in.string("version");
    if (in.failed()) return in.error();
    return version;
}

Result<DiagnosticContent> decode_diagnostic_content(std::string_view body) {
    return decode_document<DiagnosticContent>(body, fields::kDiagnosticMembers);
}

}  // namespace opensandbox::sdk::wire
