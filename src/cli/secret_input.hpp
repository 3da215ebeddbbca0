#pragma once

#include "opensandbox/error.hpp"

#include <string>
#include <string_view>

namespace opensandbox::cli {

/// One line typed at the terminal. With `hidden` it is not shown while it is typed. `cancelled`
/// after Ctrl-C, `invalid_argument` where there is no terminal. Blocks.
sdk::Result<std::string> ask(std::string_view prompt, bool hidden);

/// All of standard input without the line end behind it, at most 64 KiB. Blocks.
sdk::Result<std::string> read_secret();

}  // namespace opensandbox::cli
