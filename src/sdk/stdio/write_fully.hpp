#pragma once

#include <string_view>

namespace opensandbox::sdk {

/// Writes all bytes to a descriptor, waiting when it is full; false when that failed.
bool write_fully(int fd, std::string_view bytes);

}  // namespace opensandbox::sdk
