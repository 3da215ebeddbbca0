#pragma once

#include "cli/command_table.hpp"
#include "json/document.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::cli {

/// The help of the whole program. `program` is the name it was called by.
std::string help_text(const CommandTable& table, std::string_view program);
std::string group_help_text(const CommandTable& table, const Group& group,
                            std::string_view program);
std::string command_help_text(const Command& command, std::string_view program);

/// The table as a document, for programs: every command with its arguments, options and formats.
json::object describe(const CommandTable& table);

struct ManPage {
    std::string file_name;  ///< "opensandbox-sandbox-create.1"
    std::string text;       ///< roff, for the man macros
};

/// One page for the program and one for each command, from the same table as the help. Pure.
std::vector<ManPage> man_pages(const CommandTable& table, std::string_view version);

}  // namespace opensandbox::cli
