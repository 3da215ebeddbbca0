#pragma once

#include "opensandbox/code.hpp"
#include "opensandbox/pty.hpp"

/// JSON of code contexts and terminal sessions (execd contract sections 5 and 8). Pure.
namespace opensandbox::sdk::wire {

std::string encode_code(const CodeRequest& request);
std::string encode_code_context(const std::string& language, const std::string& directory);
Result<CodeContext> decode_code_context(std::string_view body);
Result<std::vector<CodeContext>> decode_code_contexts(std::string_view body);

std::string encode_terminal(const TerminalOptions& options);
Result<std::string> decode_terminal_id(std::string_view body);
Result<TerminalInfo> decode_terminal(std::string_view body);
std::string encode_resize(std::uint16_t columns, std::uint16_t rows);
std::string encode_signal(std::string_view name);
/// A text frame. Error frames become errors: INVALID_FRAME is `protocol`, the rest `internal`.
Result<TerminalEvent> decode_terminal_text(std::string_view frame);
/// A binary frame, whose output ends at `offset`, which is moved on.
Result<TerminalEvent> decode_terminal_output(std::string frame, std::uint64_t& offset);

}  // namespace opensandbox::sdk::wire
