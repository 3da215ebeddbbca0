#pragma once

#include <string_view>

namespace opensandbox::egress {

/// Without the white space of ASCII at both ends.
inline std::string_view trim(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n\v\f";
    const auto from = text.find_first_not_of(kSpace);
    if (from == text.npos) return {};
    return text.substr(from, text.find_last_not_of(kSpace) - from + 1);
}

}  // namespace opensandbox::egress
