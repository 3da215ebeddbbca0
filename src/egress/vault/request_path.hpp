#pragma once

#include <string_view>

namespace opensandbox::egress {

/// Whether a server might take this raw path for another place than its text says: dot segments,
/// also behind escapes (decoded up to three times), backslashes and path parameters (`..;x`);
/// escapes that are malformed; control characters and '#'.
bool leaves_its_place(std::string_view raw_path);

}  // namespace opensandbox::egress
