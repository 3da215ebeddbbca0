#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>

namespace opensandbox::runtime::docker {

/// What the engine's answer of status 400 or more means; `body` is its JSON with a `message`, or
/// whatever came. Pure.
Error error_of_status(int status, std::string_view body);

/// What the `error` of a pull's stream means: `code` is the status it carries, 0 without one. Pure.
Error error_of_pull(std::int64_t code, std::string_view message);

/// Text of the engine made fit for a message: at most 2,000 bytes, control characters as spaces.
std::string presentable(std::string_view text);

}  // namespace opensandbox::runtime::docker
