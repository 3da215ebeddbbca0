#pragma once

#include "http/message.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Who may ask (lifecycle 1.2), and pages of which origins may read the answer (1.1). Pure.
namespace opensandbox::server {

inline constexpr const char* kApiKeyField = "OPEN-SANDBOX-API-KEY";

/// Paths that need no key: /health, /version and the API description, exactly.
bool is_public_path(std::string_view raw_path);

/// `^(/v1)?/sandboxes/[^/]+/proxy/\d+(/|$)` without `..` anywhere in the path: reaching a sandbox's
/// port needs no key, only its id.
bool is_proxy_path(std::string_view raw_path);

/// Whether the request carries the key. With no key configured everybody does.
bool has_valid_key(const http::RequestHead& request, std::string_view key);

/// The 401 to send, or empty when the request may pass.
std::optional<http::Response> refuse(const http::RequestHead& request, std::string_view key);

/// 401: the key is missing, or wrong.
http::Response missing_key();
http::Response invalid_key();
/// 403: a page without an origin of its own asks a server that needs no key.
http::Response no_opaque_origin();

/// 127.0.0.0/8, ::1, IPv4-mapped loopback, and Unix sockets (no address).
bool is_loopback(std::string_view address);

/// The startup guard (lifecycle 7.4): why the server must not start, or empty. `insecure` is the
/// value of OPENSANDBOX_INSECURE_SERVER.
std::optional<std::string> startup_refusal(std::string_view host, std::string_view key,
                                           std::string_view insecure);

// Cross-origin requests: any origin, reflected; authentication is by header, so a foreign page
// cannot borrow a person's credentials.

/// The answer to a preflight, which needs no key; empty for every other request.
std::optional<http::Response> answer_preflight(const http::RequestHead& request);

/// Whether a page without an origin of its own asks (`Origin: null`), as those of sandboxes are.
bool has_opaque_origin(const http::RequestHead& request);

/// Who may read an answer.
enum class Reader : std::uint8_t {
    anybody,     ///< but pages of opaque origin, unless it is a sandbox that answers
    authorized,  ///< whoever sent a key, or asks whether it may
};

/// What a browser wants to see when the request names its origin. Pages of sandboxes come from this
/// server's address: they may read what sandboxes answer, and without a key nothing of the API.
void add_cors_fields(const http::RequestHead& request, http::Fields& response, Reader reader);

}  // namespace opensandbox::server
