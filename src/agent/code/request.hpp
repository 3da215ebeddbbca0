#pragma once

#include "base/error.hpp"
#include "json/document.hpp"

#include <string>
#include <string_view>

namespace opensandbox::agent {

/// A checked body of POST /code (execd contract 5.1).
struct CodeRequest {
    std::string code;
    std::string context;   ///< id; empty for the language's default context
    std::string language;  ///< empty is the same as "command"

    [[nodiscard]] bool command() const { return language.empty() || language == "command"; }
    [[nodiscard]] bool background() const { return language == "background-command"; }
};
/// `invalid_argument` names the member and the rule. Pure.
Result<CodeRequest> parse_code_request(const json::value& body);

/// A checked body of POST /code/context.
struct ContextRequest {
    std::string language;
    std::string cwd;  ///< as requested
};
/// `invalid_argument` names the member and the rule. Pure.
Result<ContextRequest> parse_context_request(const json::value& body);

}  // namespace opensandbox::agent
