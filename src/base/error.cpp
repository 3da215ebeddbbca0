#include "base/error.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace opensandbox {

Error Error::from_errno(int number, std::string_view what) {
    ErrorCode code = ErrorCode::io;
    switch (number) {
        case ENOENT: code = ErrorCode::not_found; break;
        case EACCES:
        case EPERM: code = ErrorCode::permission_denied; break;
        case EEXIST: code = ErrorCode::conflict; break;
        case ENOSPC:
        case EDQUOT:
        case EMFILE:
        case ENFILE:
        case ENOMEM:
        case EAGAIN: code = ErrorCode::resource_exhausted; break;
        case ETIMEDOUT: code = ErrorCode::timeout; break;
        default: break;
    }
    std::string message(what);
    message += ": ";
    message += ::strerror(number);
    return {code, std::move(message)};
}

Error Error::within(std::string_view context) const {
    return {code_, wire_, std::string(context) + ": " + message_};
}

Error Error::as(std::string wire) const {
    return {code_, std::move(wire), message_};
}

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

void throw_exception_from_error(const Error& error, const boost::source_location&) {
    throw std::runtime_error(std::string(to_string(error.code())) + ": " + error.message());
}

}  // namespace opensandbox
