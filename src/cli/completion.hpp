#pragma once

#include "cli/command_table.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::cli {

/// What may stand at the end of a command line.
struct Completion {
    std::vector<std::string> words;  ///< those that begin as the last word does
    bool sandbox_ids = false;        ///< also the ids of sandboxes that begin with `prefix`
    bool files = false;              ///< also local paths
    std::string prefix;              ///< the part of the last word that is completed
    std::string before;              ///< what stands before it in the same word ("--state=")
};

/// `words` are those behind the program's name; the last is the one being typed, maybe empty. Pure.
Completion complete(const CommandTable& table, const std::vector<std::string>& words);

/// The shell's part, which asks this program: for "bash", "zsh" and "fish". `program` is what is
/// completed. Empty for other shells.
std::string completion_script(std::string_view shell, std::string_view program);

}  // namespace opensandbox::cli
