#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <stop_token>
#include <string>

namespace opensandbox::agent {

/// Replaces every occurrence of `old_text` (not empty) in a file, which keeps its mode and owner,
/// and returns how many there were. Memory does not depend on the file's size. The file is not
/// touched when there are none. `not_found` when it is missing; `cancelled`, with the file as it
/// was, soon after `stop` asks for it.
Result<std::uint64_t> replace_in_file(const std::string& path, const std::string& old_text,
                                      const std::string& new_text,
                                      const std::stop_token& stop = {});

}  // namespace opensandbox::agent
