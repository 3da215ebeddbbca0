#pragma once

#include "net/stream.hpp"
#include "opensandbox/sandbox.hpp"

#include <vector>

namespace opensandbox::cli {

/// All sandboxes that the filter lets through, of all pages.
Awaitable<sdk::Result<std::vector<sdk::SandboxInfo>>> list_all(sdk::Connection connection,
                                                               sdk::ListFilter filter);

}  // namespace opensandbox::cli
