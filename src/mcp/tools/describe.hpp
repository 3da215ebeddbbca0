#pragma once

#include "mcp/schema.hpp"
#include "opensandbox/commands.hpp"
#include "sdk/document/describe.hpp"

/// What several tools answer with: documents and their schemas. Documents that the command line
/// prints, too, are made by sdk/document.
namespace opensandbox::mcp {

json::object sandbox_info_schema();
json::object sandbox_schema();  ///< {sandbox_id, info}
json::object pagination_schema();
json::object status_schema();
json::object execution_schema();
json::object file_schema();
/// A rule of a network policy, read and written.
json::object network_rule_schema();

/// {"status": word}
json::object status_document(std::string_view word);
/// {"sandbox_id", "info"}
json::object sandbox_document(const sdk::SandboxInfo& info);

// Members of inputs that most tools have.
schema::Object with_sandbox();
/// Last, as every schema has it last.
schema::Object& add_connect_if_missing(schema::Object& members);

/// The number of seconds as the SDK takes it: rounded up.
std::chrono::seconds whole_seconds(double seconds);
std::chrono::milliseconds milliseconds_of(double seconds);

sdk::Error invalid(std::string_view name, std::string_view expected);

}  // namespace opensandbox::mcp
