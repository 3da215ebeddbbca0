#include "agent/code/request.hpp"

#include "agent/ground/reply.hpp"

namespace opensandbox::agent {
namespace {

/// Absent is empty.
Status take(const json::object& from, std::string_view name, std::string& into) {
    auto text = json::get_string(from, name);
    if (!text) return text.error();
    into = text->value_or("");
    return {};
}

}  // namespace

Result<CodeRequest> parse_code_request(const json::value& body) {
    if (!body.is_object()) return invalid("the request body must be a JSON object");
    json::object members = with_lower_names(body.get_object());
    CodeRequest request;
    if (Status taken = take(members, "code", request.code); !taken) return taken.error();
    if (request.code.empty()) return invalid("code: must not be empty");
    const json::value* context = json::find(members, "context");
    if (!context) return request;
    if (!context->is_object()) return invalid("context: must be an object");
    json::object inner = with_lower_names(context->get_object());
    if (Status taken = take(inner, "id", request.context); !taken) return taken.error();
    if (Status taken = take(inner, "language", request.language); !taken) return taken.error();
    return request;
}

Result<ContextRequest> parse_context_request(const json::value& body) {
    if (!body.is_object()) return invalid("the request body must be a JSON object");
    json::object members = with_lower_names(body.get_object());
    ContextRequest request;
    if (Status taken = take(members, "language", request.language); !taken) return taken.error();
    if (Status taken = take(members, "cwd", request.cwd); !taken) return taken.error();
    if (request.language.empty()) return invalid("language: is required");
    if (request.cwd.find('\0') != std::string::npos) return invalid("cwd: must not hold NUL");
    return request;
}

}  // namespace opensandbox::agent
