#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <string>

namespace opensandbox::runtime::native {

/// A TCP socket that listens on a numeric address in this network namespace, "::" standing for the
/// addresses of both families. `port` 0 lets the kernel choose; afterwards it is the one it has.
Result<UniqueFd> listen_on(const std::string& host, std::uint16_t& port);

}  // namespace opensandbox::runtime::native
