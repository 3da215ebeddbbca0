#pragma once

#include "base/error.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace opensandbox::registry {

/// What a token server gave.
struct Token {
    Token() = default;
    std::string value;
    std::chrono::seconds lifetime{60};
};

/// Reads its answer: {"token" or "access_token", "expires_in"}. `bad_gateway` when it is not that.
/// Pure.
Result<Token> parse_token(std::string_view text);

}  // namespace opensandbox::registry
