#pragma once

#include "cli/command_table.hpp"

#include <string>
#include <vector>

namespace opensandbox::cli {

struct ManPage {
    std::string file_name;  ///< "opensandbox-sandbox-create.1"
    std::string text;       ///< roff, for the man macros
};

/// One page for the program and one for each command, from the same table as the help. Pure.
std::vector<ManPage> man_pages(const CommandTable& table, std::string_view version);

}  // namespace opensandbox::cli
