#pragma once

#include "http/message.hpp"

#include <cstdint>
#include <optional>

/// Cross-origin requests (lifecycle 1.1): any origin, reflected; authentication is by header, so a
/// foreign page cannot borrow a person's credentials. Pure.
namespace opensandbox::server {

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
