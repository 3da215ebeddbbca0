#pragma once

#include "base/error.hpp"
#include "http/message.hpp"

namespace opensandbox::http {

/// The one map from error codes to HTTP statuses: invalid_argument 400, unauthenticated 401,
/// permission_denied 403, not_found 404, conflict 409, too_large 413, resource_exhausted 429,
/// unsupported 501, unavailable 503, bad_gateway 502, timeout 504, protocol 400, all else 500.
int status_of(ErrorCode code);

}  // namespace opensandbox::http
