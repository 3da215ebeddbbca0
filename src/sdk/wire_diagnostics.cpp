#include "sdk/wire_diagnostics.hpp"

#include "sdk/fields/diagnostics.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

Result<DiagnosticContent> decode_diagnostic_content(std::string_view body) {
    return decode_document<DiagnosticContent>(body, fields::diagnostic_members);
}

}  // namespace opensandbox::sdk::wire
