#pragma once

#include "base/error.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::registry {

/// One way in that a server offers in WWW-Authenticate (RFC 9110 section 11.6.1).
struct Challenge {
    std::string scheme;                                           ///< lower case: "basic", "bearer"
    std::vector<std::pair<std::string, std::string>> parameters;  ///< names in lower case

    /// Empty when it is not there.
    [[nodiscard]] std::string_view parameter(std::string_view name) const;
};

/// Reads the value of the field, which may hold several challenges. `protocol` when it breaks the
/// grammar or its limits: 8 KiB, 16 challenges of 32 parameters. Pure.
Result<std::vector<Challenge>> parse_challenges(std::string_view field);

/// What a token server gave.
struct Token {
    std::string value;
    std::chrono::seconds lifetime{60};
};

/// Reads its answer: {"token" or "access_token", "expires_in"}. `bad_gateway` when it is not that.
/// Pure.
Result<Token> parse_token(std::string_view text);

}  // namespace opensandbox::registry
