#pragma once

#include "cli/command_table.hpp"
#include "json/document.hpp"

#include <string>
#include <string_view>

namespace opensandbox::cli {

/// The help of the whole program. `program` is the name it was called by.
std::string help_text(const CommandTable& table, std::string_view program);
std::string group_help_text(const CommandTable& table, const Group& group,
                            std::string_view program);
std::string command_help_text(const Command& command, std::string_view program);

/// The table as a document, for programs: every command with its arguments, options and formats.
json::object describe(const CommandTable& table);

}  // namespace opensandbox::cli
