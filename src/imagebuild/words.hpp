#pragma once

#include "base/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Texts of a Dockerfile in pieces. Pure.
namespace opensandbox::imagebuild {

/// Without blanks (space, tab) at the ends.
std::string_view trim(std::string_view text);
std::string_view trim_left(std::string_view text);
/// ASCII only.
std::string to_lower(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// Words between blanks; quotes hold blanks together and stay, as does the escape character.
std::vector<std::string> split_words(std::string_view text, char escape);

/// The strings of a JSON array; empty when the text is no JSON array. `invalid_argument` when it is
/// one that holds something else than strings.
Result<std::optional<std::vector<std::string>>> parse_exec_form(std::string_view text);

}  // namespace opensandbox::imagebuild
