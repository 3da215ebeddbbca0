#pragma once

#include "http/message.hpp"

#include <optional>

/// Cross-origin requests (lifecycle 1.1): any origin, reflected; authentication is by header, so a
/// foreign page cannot borrow a person's credentials. Pure.
namespace opensandbox::server {

/// The answer to a preflight, which needs no key; empty for every other request.
std::optional<http::Response> answer_preflight(const http::RequestHead& request);

/// `Vary: Origin`, and what a browser wants to see when the request names its origin.
void add_cors_fields(const http::RequestHead& request, http::Fields& response);

}  // namespace opensandbox::server
