#pragma once

#include "options/option.hpp"

#include <span>

namespace opensandbox::options {

/// `left` and, from `column` on, `right`, whose line ends are kept in that column.
std::string help_row(std::string_view left, std::string_view right, std::size_t column);

/// The rows of options. `letters`: names without a letter stand below those with one.
std::string help_rows(std::span<const Option> table, std::size_t column, bool letters = false);

}  // namespace opensandbox::options
