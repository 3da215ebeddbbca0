#pragma once

#include <string>
#include <string_view>

namespace opensandbox::cli {

/// Languages of code contexts (execd contract section 5).
inline constexpr std::string_view kLanguages = "python|javascript|typescript|bash|java|go";

/// The language that a file's name tells ("a.py": python); empty when it tells none. Pure.
std::string_view language_of(std::string_view file_name);

/// Whether what was typed so far goes on in the next line: open brackets or quotes, a backslash at
/// the end, in Python also a block that no empty line has ended. Pure.
bool needs_more(std::string_view language, std::string_view typed);

}  // namespace opensandbox::cli
