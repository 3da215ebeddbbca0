#pragma once

#include "json/document.hpp"
#include "opensandbox/files.hpp"

namespace opensandbox::mcp {

/// Members mode (755: octal digits as a decimal number), owner and group.
sdk::Result<sdk::Permissions> read_permissions(const json::object& from);

}  // namespace opensandbox::mcp
