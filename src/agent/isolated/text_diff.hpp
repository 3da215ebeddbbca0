#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::agent {

/// The unified diff of two texts with three lines of context; empty when they are the same. Labels
/// are what stands behind `---` and `+++`. Time and memory are bounded: texts that differ too much
/// become one replacement. Pure.
std::string unified_diff(std::string_view before, std::string_view after,
                         std::string_view old_label, std::string_view new_label);

/// Whether bytes are text that a diff can show: UTF-8 without NUL. Pure.
bool is_text(std::string_view bytes);

}  // namespace opensandbox::agent
