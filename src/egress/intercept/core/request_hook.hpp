#pragma once

#include "egress/intercept/core/gate.hpp"
#include "http/fields.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// A request that the policy allowed, on its way out. The fields hold neither Host nor
/// pseudo-fields nor those of one hop; Content-Length may be among them and must stay as it is.
struct OutgoingRequest {
    ClientId client = 0;
    std::string_view scheme;  ///< "http" or "https"
    std::string_view host;    ///< a name or address that the server's certificate was checked for
    std::uint16_t port = 0;
    std::string_view method;
    std::string& target;   ///< origin form, may be changed
    http::Fields& fields;  ///< may be changed
};

/// An answer of ours in place of the server's.
struct RefusedRequest {
    int status;
    std::string text;  ///< for people, plain text
};

/// What is to be done to the rest of a request and to its answer.
struct RequestTreatment {
    std::optional<RefusedRequest> refusal;
    /// Wanted: the body is collected, up to a limit of the interceptor (413 beyond it), and what
    /// this returns is sent in its place. Empty in return refuses the request with 502.
    std::function<std::optional<std::string>(std::string body)> rewrite_body;
    /// Called with the fields of every part of the answer (interim, final, trailers).
    std::function<void(http::Fields& fields)> redact;
};

/// Looks at and changes requests (the credential vault). Called on the event loop's thread, once a
/// request, in HTTP/1.1 and HTTP/2, over TLS or not. What it throws refuses the request.
class RequestHook {
  public:
    virtual ~RequestHook() = default;
    virtual RequestTreatment on_request(const OutgoingRequest& request) = 0;
};

}  // namespace opensandbox::egress
