#pragma once

#include "base/error.hpp"

#include <string_view>

namespace opensandbox::lifecycle {

/// A failure of the API server under the contract's code (kubernetes 3.2): a quota that is used up
/// is 403 KUBERNETES::QUOTA_EXCEEDED; what is not reachable stays what it is; a missing permission
/// and all else is KUBERNETES::API_ERROR with the API server's own sentence, which names it.
/// `action` completes "Failed to …". Pure.
Error cluster_error(const Error& error, std::string_view action);

}  // namespace opensandbox::lifecycle
