#pragma once

#include "opensandbox/error.hpp"

#include <cstdint>
#include <optional>
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

/// One range of a `Range` header field.
struct RangeHeader {
    std::uint64_t begin = 0;
    std::optional<std::uint64_t> end;         ///< inclusive
    std::optional<std::uint64_t> last_bytes;  ///< so many at the end, instead of the others
};

/// "bytes=0-99", "bytes=100-", "bytes=-100"; `invalid_argument` for anything else.
sdk::Result<RangeHeader> parse_byte_range(std::string_view text);

/// How many bytes at the end belong to a character that is cut off (0 to 3).
std::size_t partial_character(std::string_view bytes);

}  // namespace opensandbox::mcp
