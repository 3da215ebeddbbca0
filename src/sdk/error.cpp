#include "opensandbox/error.hpp"

namespace opensandbox::sdk {

std::string_view to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument: return "invalid_argument";
        case ErrorCode::unauthenticated: return "unauthenticated";
        case ErrorCode::permission_denied: return "permission_denied";
        case ErrorCode::not_found: return "not_found";
        case ErrorCode::conflict: return "conflict";
        case ErrorCode::too_large: return "too_large";
        case ErrorCode::resource_exhausted: return "resource_exhausted";
        case ErrorCode::unsupported: return "unsupported";
        case ErrorCode::unavailable: return "unavailable";
        case ErrorCode::bad_gateway: return "bad_gateway";
        case ErrorCode::timeout: return "timeout";
        case ErrorCode::cancelled: return "cancelled";
        case ErrorCode::protocol: return "protocol";
        case ErrorCode::io: return "io";
        case ErrorCode::internal: return "internal";
    }
    return "internal";
}

Error Error::within(std::string_view context) const {
    Error copy = *this;
    copy.message_ = std::string(context) + ": " + message_;
    return copy;
}

Error Error::with_retry_after(std::optional<std::chrono::milliseconds> wait) const {
    Error copy = *this;
    copy.retry_after_ = wait;
    return copy;
}

}  // namespace opensandbox::sdk
