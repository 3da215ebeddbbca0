#pragma once

#include "base/error.hpp"

#include <string>

namespace opensandbox::lifecycle {

/// A failure of the runtime to start a sandbox under the contract's code: an image that is not
/// there is a failed pull (500), what the runtime did not name is a failed start (`start_failed`),
/// for want of space or addresses as well. Pure.
Error start_failure(const Error& error, const std::string& start_failed);

}  // namespace opensandbox::lifecycle
