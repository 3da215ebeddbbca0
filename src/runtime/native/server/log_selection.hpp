#pragma once

#include "runtime/runtime.hpp"

#include <string>
#include <string_view>

namespace opensandbox::runtime::native {

/// The lines of an output log ("<RFC 3339> <text>\n") that a query wants. A line whose time cannot
/// be read belongs to the one before it. Pure.
std::string select_lines(std::string_view log, const LogQuery& query);

}  // namespace opensandbox::runtime::native
