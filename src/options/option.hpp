#pragma once

#include <functional>
#include <string>
#include <string_view>

/// Command-line options of every role, as data: parser and help texts read them.
namespace opensandbox::options {

/// Takes a value, or says what would be accepted in its place.
using Setter = std::function<std::string(const std::string& value)>;

struct Option {
    std::string_view name = {};   ///< "--image"
    char letter = 0;              ///< 'i' for -i, 0 for none
    std::string_view value = {};  ///< what it takes ("IMAGE"); empty for a flag
    std::string_view help = {};   ///< empty: not in the help
    bool repeatable = false;
    bool required = false;
    std::string_view alias = {};     ///< another name that is understood, too; not in the help
    std::string_view variable = {};  ///< of the environment, where one stands for the option
    Setter set = {};                 ///< empty: whoever reads the line keeps the value
};

}  // namespace opensandbox::options
