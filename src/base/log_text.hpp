#pragma once

#include <string>
#include <string_view>

/// What others wrote, as a log may show it: no byte of it can end a line, drive the terminal that
/// shows the log, or change the order in which it is read. Pure.
namespace opensandbox::log {

/// Appends a JSON string. Escaped are all control characters (DEL and U+0080 to U+009F as well),
/// the separators of lines and paragraphs and the marks of writing direction; what is not UTF-8
/// becomes U+FFFD.
void append_log_string(std::string& out, std::string_view text);

/// The same for a value that is JSON already.
void append_log_json(std::string& out, std::string_view json);

/// The same as append_log_string without quotes, and as it stands where nothing has to be escaped.
void append_log_sentence(std::string& out, std::string_view text);

}  // namespace opensandbox::log
