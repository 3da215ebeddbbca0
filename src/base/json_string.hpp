#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox {

/// Appends `bytes` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD, one for
/// each ill-formed part (execd contract 2.2).
void append_json_string(std::string& out, std::string_view bytes);

/// Appends a decimal integer.
void append_integer(std::string& out, std::int64_t number);

/// Whether the bytes are well-formed UTF-8 (no surrogates, no overlong forms). Pure.
bool is_utf8(std::string_view bytes);

/// How many bytes at the end (0 to 3) begin a UTF-8 character that is not complete yet.
std::size_t incomplete_utf8_tail(std::string_view bytes);

}  // namespace opensandbox
