#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox {

/// RFC 4648 section 4, with padding.
std::string to_base64(std::string_view bytes);
/// Empty when it is malformed.
std::optional<std::string> from_base64(std::string_view text);

/// RFC 4648 section 5, without padding.
std::string to_base64url(std::string_view bytes);

}  // namespace opensandbox
