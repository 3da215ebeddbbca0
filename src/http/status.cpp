#include "http/status.hpp"

namespace opensandbox::http {

int status_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument: return 400;
        case ErrorCode::unauthenticated: return 401;
        case ErrorCode::permission_denied: return 403;
        case ErrorCode::not_found: return 404;
        case ErrorCode::conflict: return 409;
        case ErrorCode::too_large: return 413;
        case ErrorCode::resource_exhausted: return 429;
        case ErrorCode::unsupported: return 501;
        case ErrorCode::unavailable: return 503;
        case ErrorCode::bad_gateway: return 502;
        case ErrorCode::timeout: return 504;
        case ErrorCode::protocol: return 400;
        case ErrorCode::cancelled:
        case ErrorCode::io:
        case ErrorCode::internal: return 500;
    }
    return 500;
}

}  // namespace opensandbox::http
