#pragma once

#include "opensandbox/error.hpp"

#include <string>
#include <string_view>

namespace opensandbox::mcp {

/// How bytes of a file stand in JSON.
enum class Encoding : unsigned char { utf8, latin1, base64 };

/// "utf-8", "ascii" (a part of it), "latin-1", "base64", in any case, with "-" or "_".
sdk::Result<Encoding> parse_encoding(std::string_view name);

/// Fails with `invalid_argument` where bytes are no text of that encoding.
sdk::Result<std::string> to_json_text(std::string_view bytes, Encoding encoding);
sdk::Result<std::string> from_json_text(std::string_view text, Encoding encoding);

}  // namespace opensandbox::mcp
