#pragma once

#include <string>
#include <vector>

namespace opensandbox::cli {

/// A word as a POSIX shell must read it to get it back unchanged.
std::string shell_quote(const std::string& word);

/// All words, quoted, with spaces between.
std::string shell_join(const std::vector<std::string>& words);

}  // namespace opensandbox::cli
