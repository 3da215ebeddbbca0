#pragma once

#include "base/error.hpp"

#include <map>
#include <string>
#include <string_view>

namespace opensandbox::imagebuild {

using Variables = std::map<std::string, std::string, std::less<>>;

/// Most bytes that a word may have after expansion.
inline constexpr std::size_t kLongestWord = std::size_t{1} << 20;

/// Takes away quotes and escapes and replaces variables as a Dockerfile has it: `$NAME`, `${NAME}`,
/// `${NAME:-word}`, `${NAME-word}`, `${NAME:+word}`, `${NAME+word}`, `${NAME:?text}`,
/// `${NAME?text}`. Single quotes keep everything, an escaped `$` is none, an unset variable is
/// empty. Pure; `invalid_argument` tells the rule.
Result<std::string> expand(std::string_view word, const Variables& variables, char escape);

}  // namespace opensandbox::imagebuild
