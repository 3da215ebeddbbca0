#pragma once

#include "cli/arguments.hpp"
#include "cli/command_table.hpp"

#include <optional>
#include <string>
#include <vector>

namespace opensandbox::cli {

/// Every role that is not a server: the command line. Returns the exit code: the remote command's
/// own for `run` and `command run`, 2 for wrong usage, 1 for other failures.
int main(int argc, char** argv);

/// A command line, understood.
struct ParsedLine {
    const Command* command = nullptr;  ///< null when only help or the version was asked for
    Arguments arguments;
    Format format = Format::table;
    bool wants_help = false;
    bool wants_version = false;
    std::string help_group;  ///< the group named; its help is meant when there is no command
    std::optional<Failure> problem;
};

/// Options may stand anywhere before `--`. One that may not be repeated takes its last value.
ParsedLine parse_line(const CommandTable& table, const std::vector<std::string>& words);

}  // namespace opensandbox::cli
