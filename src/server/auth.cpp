#include "server/auth.hpp"

#include "base/identifier.hpp"
#include "server/error_response.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::server {
namespace {

constexpr std::array<std::string_view, 5> kPublicPaths{"/health", "/version", "/docs", "/redoc",
                                                       "/openapi.json"};

}  // namespace

bool is_public_path(std::string_view raw_path) {
    return std::ranges::find(kPublicPaths, raw_path) != kPublicPaths.end();
}

bool is_proxy_path(std::string_view path) {
    if (path.find("..") != std::string_view::npos) return false;
    if (path.starts_with("/v1/")) path.remove_prefix(3);
    constexpr std::string_view kSandboxes = "/sandboxes/";
    if (!path.starts_with(kSandboxes)) return false;
    path.remove_prefix(kSandboxes.size());
    auto id_end = path.find('/');
    if (id_end == 0 || id_end == std::string_view::npos) return false;
    path.remove_prefix(id_end);
    constexpr std::string_view kProxy = "/proxy/";
    if (!path.starts_with(kProxy)) return false;
    path.remove_prefix(kProxy.size());
    std::string_view port = path.substr(0, path.find('/'));
    return !port.empty() && port.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_valid_key(const http::RequestHead& request, std::string_view key) {
    if (key.empty()) return true;
    auto given = request.fields.get(kApiKeyField);
    return given && equal_constant_time(*given, key);
}

std::optional<http::Response> refuse(const http::RequestHead& request, std::string_view key) {
    if (has_valid_key(request, key)) return std::nullopt;
    if (is_public_path(request.path()) || is_proxy_path(request.path())) return std::nullopt;
    auto given = request.fields.get(kApiKeyField);
    return !given || given->empty() ? missing_key() : invalid_key();
}

http::Response missing_key() {
    return error_response(401, "MISSING_API_KEY",
                          "Authentication credentials are missing: send the API key in the header "
                          "OPEN-SANDBOX-API-KEY.");
}

http::Response invalid_key() {
    return error_response(401, "INVALID_API_KEY",
                          "Authentication credentials are invalid: the API key in the header "
                          "OPEN-SANDBOX-API-KEY is not this server's.");
}

http::Response no_opaque_origin() {
    return error_response(403, "OPAQUE_ORIGIN",
                          "Origin: null: pages without an origin of their own, such as those of "
                          "sandboxes, may not ask the API without a key.");
}

bool is_loopback(std::string_view address) {
    if (address.empty() || address == "::1" || address == "localhost") return true;
    if (address.starts_with("::ffff:")) address.remove_prefix(7);
    return address.starts_with("127.");
}

std::optional<std::string> startup_refusal(std::string_view host, std::string_view key,
                                           std::string_view insecure) {
    if (!key.empty() || insecure == "YES" || (!host.empty() && is_loopback(host)))
        return std::nullopt;
    return "server.host: " + std::string(host) +
           " is reachable from other machines and no API key is set; set server.api_key or "
           "OPENSANDBOX_SERVER_API_KEY, or OPENSANDBOX_INSECURE_SERVER=YES to let anybody in";
}

}  // namespace opensandbox::server
