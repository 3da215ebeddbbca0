#pragma once

#include "agent/process/environment.hpp"
#include "agent/process/spawn.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// How one language is run by an interpreter process. The driver's text travels in the executable
/// and reaches the interpreter without a file.
struct Driver {
    std::string_view language;
    std::string_view looked_for;  ///< in words, for the error when there is none
    /// Programs to try, each with all arguments.
    std::vector<Program> (*programs)(std::optional<std::string_view> path);
    std::string_view program;  ///< sent as the first frame; empty when it is among the arguments
    std::string_view library;  ///< sent behind it: what the driver compiles only when it needs it
    /// Passed as a file in memory, descriptor 4: for an interpreter that wants one.
    std::string_view file;
    bool keeps_state = false;  ///< its state can be carried into a new process
};

/// Null for a language that no driver knows.
const Driver* find_driver(std::string_view language);

/// The texts of the drivers, built from the files beside this one.
namespace program {
extern const std::string_view kPython;
extern const std::string_view kPythonRich;
extern const std::string_view kJavaScript;
extern const std::string_view kBash;
extern const std::string_view kJava;
}  // namespace program

}  // namespace opensandbox::agent
