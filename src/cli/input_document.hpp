#pragma once

#include "cli/invocation.hpp"
#include "json/document.hpp"

#include <string>

namespace opensandbox::cli {

/// The JSON or YAML object in the file that an option names, or on standard input for "-"; at most
/// 1 MiB. What is wrong with it is `invalid_argument`, naming option and file.
Awaitable<sdk::Result<json::object>> read_input_object(Invocation& invocation, std::string option);

}  // namespace opensandbox::cli
