#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::model {

/// An interpreter to start ahead of the first code, and what it loads: an element of an image's
/// label `opensandbox.io/warm`.
struct WarmProgram {
    static constexpr std::size_t kMaxText = 4096;
    static constexpr std::size_t kMaxImports = 64;
    static constexpr std::size_t kMaxName = 128;

    std::string language;              ///< "python"
    std::vector<std::string> imports;  ///< dotted names of modules
};

/// From `[{"language":"python","import":["json","numpy"]}]`; an empty text or list is no program.
/// `invalid_argument` names the member and the rule.
Result<std::vector<WarmProgram>> parse_warm_programs(std::string_view text);

}  // namespace opensandbox::model
