#include "server/auth.hpp"

namespace opensandbox::server {
namespace {

constexpr std::string_view kOpaque = "null";

}  // namespace

std::optional<http::Response> answer_preflight(const http::RequestHead& request) {
    auto method = request.fields.get("Access-Control-Request-Method");
    if (request.method != "OPTIONS" || !method || !request.fields.has("Origin"))
        return std::nullopt;
    http::Response response(200, "text/plain; charset=utf-8", "OK");
    auto& fields = response.head.fields;
    fields.set("Access-Control-Allow-Methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
    fields.set("Access-Control-Max-Age", "600");
    if (auto wanted = request.fields.get("Access-Control-Request-Headers")) {
        fields.set("Access-Control-Allow-Headers", std::string(*wanted));
    }
    return response;
}

bool has_opaque_origin(const http::RequestHead& request) {
    return request.fields.get("Origin") == kOpaque;
}

void add_cors_fields(const http::RequestHead& request, http::Fields& response, Reader reader) {
    auto origin = request.fields.get("Origin");
    if (!origin) return;
    if (*origin == kOpaque && reader == Reader::anybody && !is_proxy_path(request.path())) return;
    response.set("Access-Control-Allow-Origin", std::string(*origin));
    response.set("Access-Control-Allow-Credentials", "true");
    response.set("Access-Control-Expose-Headers", "OPEN-SANDBOX-ORIGIN");
}

}  // namespace opensandbox::server
