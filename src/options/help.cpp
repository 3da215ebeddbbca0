#include "options/help.hpp"

namespace opensandbox::options {

std::string help_row(std::string_view left, std::string_view right, std::size_t column) {
    std::string text = "  " + std::string(left);
    if (text.size() + 2 > column)
        text += "\n" + std::string(column, ' ');
    else
        text.append(column - text.size(), ' ');
    for (char c : right) {
        text += c;
        if (c == '\n') text.append(column, ' ');
    }
    return text + "\n";
}

std::string help_rows(std::span<const Option> table, std::size_t column, bool letters) {
    std::string text;
    for (const auto& option : table) {
        if (option.help.empty()) continue;
        std::string left = option.letter ? std::string("-") + option.letter + ", "
                           : letters     ? "    "
                                         : "";
        left += option.name;
        if (!option.value.empty()) left += " " + std::string(option.value);
        std::string right(option.help);
        if (!option.variable.empty()) right += " (env " + std::string(option.variable) + ")";
        if (option.repeatable) right += " Repeatable.";
        if (option.required) right += " Required.";
        text += help_row(left, right, column);
    }
    return text;
}

}  // namespace opensandbox::options
