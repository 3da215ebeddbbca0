#pragma once

#include "opensandbox/diagnostics.hpp"

#include <string_view>

namespace opensandbox::sdk::wire {

Result<DiagnosticContent> decode_diagnostic_content(std::string_view body);

}  // namespace opensandbox::sdk::wire
