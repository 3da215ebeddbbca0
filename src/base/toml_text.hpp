#pragma once

#include "base/error.hpp"

#include <string_view>

namespace opensandbox {

/// Refuses what TOML forbids and toml++ 3.3.0 has undefined behaviour on: characters beyond ASCII
/// outside of comments and quoted text. The error says `source:line`.
Status check_toml_text(std::string_view text, std::string_view source);

}  // namespace opensandbox
