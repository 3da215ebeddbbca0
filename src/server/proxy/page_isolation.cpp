#include "server/error_response.hpp"
#include "server/proxy/proxy_rules.hpp"

#include <array>

namespace opensandbox::server {
namespace {

/// Browsers keep these for all of the origin, or for its host.
constexpr std::array kOfTheOrigin{
    "Service-Worker-Allowed",
    "Clear-Site-Data",
    "Strict-Transport-Security",
    "Public-Key-Pins",
    "Alt-Svc",
    "NEL",
    "Report-To",
    "Accept-CH",
    "Critical-CH",
    "Origin-Agent-Cluster",
    "Use-As-Dictionary",
    "Set-Login",
    "Secure-Session-Registration",
    "Sec-Session-Registration",
};

/// Programs may have a use for these; a browser would send what it keeps of them to the API as well
/// or ask its user for a password in the API's name.
constexpr std::array kKeptByBrowsers{"Set-Cookie", "Set-Cookie2", "WWW-Authenticate"};

/// Without allow-same-origin the page's origin is opaque, and without allow-top-navigation a frame
/// cannot take its window elsewhere.
constexpr const char* kPagePolicy =
    "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

}  // namespace

bool is_browser(const http::RequestHead& request) {
    const http::Fields& fields = request.fields;
    // Sec-Fetch-Site is not sent to plain addresses beyond loopback; a page that sets another
    // User-Agent sends its Origin. Node's fetch sends Sec-Fetch-Mode alone.
    return fields.has("Sec-Fetch-Site") || fields.has("Origin") ||
           fields.get("User-Agent").value_or("").starts_with("Mozilla/");
}

bool is_service_worker(const http::RequestHead& request) {
    return request.fields.has("Service-Worker") ||
           request.fields.get("Sec-Fetch-Dest") == std::string_view("serviceworker");
}

http::Response no_service_worker() {
    return error_response(403, "SERVICE_WORKER_REFUSED",
                          "A sandbox's page has no service workers below the server's own address; "
                          "publish the port and open the page there.");
}

void isolate_page(http::Fields& fields, bool to_browser) {
    for (const char* name : kOfTheOrigin)
        fields.erase(name);
    if (to_browser) {
        for (const char* name : kKeptByBrowsers)
            fields.erase(name);
    }
    // Beside a policy of the service's own, which can only forbid more.
    fields.add("Content-Security-Policy", kPagePolicy);
}

}  // namespace opensandbox::server
