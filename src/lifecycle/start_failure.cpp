#include "lifecycle/start_failure.hpp"

namespace opensandbox::lifecycle {

Error start_failure(const Error& error, const std::string& start_failed) {
    if (error.wire().ends_with("::SANDBOX_IMAGE_PULL_FAILED")) {
        return Error(ErrorCode::internal, error.wire(), "image.uri: " + error.message());
    }
    if (!error.wire().empty()) return error;
    if (error.code() == ErrorCode::invalid_argument) return error.as("SANDBOX::INVALID_PARAMETER");
    return {ErrorCode::internal, start_failed, "start of the sandbox: " + error.message()};
}

}  // namespace opensandbox::lifecycle
