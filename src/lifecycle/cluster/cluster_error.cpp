#include "lifecycle/cluster/cluster_error.hpp"

namespace opensandbox::lifecycle {

Error cluster_error(const Error& error, std::string_view action) {
    const std::string message = "Failed to " + std::string(action) + ": " + error.message();
    const bool quota = error.message().find("exceeded quota") != std::string::npos;
    if (quota) return {ErrorCode::permission_denied, "KUBERNETES::QUOTA_EXCEEDED", message};
    switch (error.code()) {
        case ErrorCode::unavailable:
        case ErrorCode::timeout:
        case ErrorCode::resource_exhausted:
            return {ErrorCode::unavailable, "KUBERNETES::API_ERROR", message};
        case ErrorCode::invalid_argument:
            return {ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER", message};
        default: return {ErrorCode::internal, "KUBERNETES::API_ERROR", message};
    }
}

}  // namespace opensandbox::lifecycle
