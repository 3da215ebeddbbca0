#include "cli/help.hpp"

#include <algorithm>
#include <cctype>

namespace opensandbox::cli {

namespace {

constexpr std::string_view kProgram = "opensandbox";

/// Text as roff must read it to print it unchanged; no line may begin with a control character.
std::string escaped(std::string_view text) {
    std::string out;
    bool line_start = true;
    for (char c : text) {
        if (line_start && (c == '.' || c == '\'')) out += "\\&";
        line_start = c == '\n';
        switch (c) {
            case '\\': out += "\\e"; break;
            case '-': out += "\\-"; break;
            case '\'': out += "\\(aq"; break;
            case '`': out += "\\(ga"; break;
            case '^': out += "\\(ha"; break;
            case '~': out += "\\(ti"; break;
            default: out += c;
        }
    }
    return out;
}

/// An argument of a macro.
std::string roff_quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : escaped(text)) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

std::string upper(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

std::string page_name(const Command& command) {
    std::string name = std::string(kProgram) + "-" + command.full_name();
    std::ranges::replace(name, ' ', '-');
    return name;
}

std::string head(const std::string& name, std::string_view version, std::string_view summary) {
    if (summary.ends_with('.')) summary.remove_suffix(1);
    return ".TH " + roff_quoted(upper(name)) + " 1 \"\" " +
           roff_quoted(std::string(kProgram) + " " + std::string(version)) +
           " \"User Commands\"\n" + ".SH NAME\n" + escaped(name) + " \\- " + escaped(summary) +
           "\n";
}

std::string synopsis(const Command& command) {
    using Count = Positional::Count;
    std::string text = ".SH SYNOPSIS\n.B " +
                       escaped(std::string(kProgram) + " " + command.full_name()) +
                       "\n[\\fIOPTIONS\\fR]\n";
    for (const auto& positional : command.positionals) {
        const std::string name = "\\fI" + escaped(positional.name) + "\\fR";
        switch (positional.count) {
            case Count::one: text += name; break;
            case Count::optional: text += "[" + name + "]"; break;
            case Count::many: text += name + "..."; break;
            case Count::any_number: text += "[" + name + "...]"; break;
            case Count::payload: text += "\\-\\- " + name + "..."; break;
            case Count::optional_payload: text += "[\\-\\- " + name + "...]"; break;
        }
        text += "\n";
    }
    return text;
}

std::string options_section(std::string_view title, const std::vector<Option>& options) {
    if (options.empty()) return {};
    std::string text = ".SH " + std::string(title) + "\n";
    for (const auto& option : options) {
        text += ".TP\n";
        if (option.letter) text += "\\fB\\-" + std::string(1, option.letter) + "\\fR, ";
        text += "\\fB" + escaped(option.name) + "\\fR";
        if (!option.value.empty()) text += " \\fI" + escaped(option.value) + "\\fR";
        text += "\n" + escaped(option.help) + "\n";
        if (option.repeatable) text += "May be given more than once.\n";
        if (option.required) text += "Must be given.\n";
    }
    return text;
}

std::string formats_text(const std::vector<Format>& formats) {
    if (formats.empty()) return {};
    std::string names;
    for (Format format : formats)
        names += (names.empty() ? "" : ", ") + std::string(to_string(format));
    return ".SH OUTPUT\nWith \\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFORMAT\\fR as one of: " +
           names + "; the first is the default.\n";
}

std::string examples_section(const std::vector<Example>& examples) {
    if (examples.empty()) return {};
    std::string text = ".SH EXAMPLES\n";
    for (const auto& example : examples) {
        text += ".TP\n" + escaped(example.says) + "\n\\fB" +
                escaped(std::string(kProgram) + " " + std::string(example.line)) + "\\fR\n";
    }
    return text;
}

std::string exit_section() {
    return ".SH EXIT STATUS\n0 on success, 1 when it did not work, 2 when the command line is\n"
           "wrong, 128 and the number of the signal that ended it. Commands that run something in\n"
           "a sandbox end with its exit code.\n";
}

ManPage command_page(const Command& command, std::string_view version) {
    const std::string name = page_name(command);
    std::string text = head(name, version, command.summary) + synopsis(command) +
                       ".SH DESCRIPTION\n" + escaped(command.summary) + "\n";
    if (!command.details.empty()) text += ".PP\n" + escaped(command.details) + "\n";
    if (!command.positionals.empty()) {
        text += ".SH ARGUMENTS\n";
        for (const auto& positional : command.positionals) {
            text +=
                ".TP\n\\fI" + escaped(positional.name) + "\\fR\n" + escaped(positional.help) + "\n";
        }
    }
    text += options_section("OPTIONS", command.options) + formats_text(command.formats) +
            exit_section() + examples_section(command.examples) + ".SH SEE ALSO\n.BR " +
            std::string(kProgram) + " (1)\n";
    return {name + ".1", std::move(text)};
}

ManPage program_page(const CommandTable& table, std::string_view version) {
    std::string text = head(std::string(kProgram), version, "run untrusted code in sandboxes") +
                       ".SH SYNOPSIS\n.B " + std::string(kProgram) +
                       "\n[\\fIOPTIONS\\fR]\n\\fICOMMAND\\fR ...\n.SH DESCRIPTION\n"
                       "One program is server, agent and command line of a sandbox platform.\n"
                       ".SH COMMANDS\n.TP\n.B serve\nStart the server.\n.TP\n.B init\\-config\n"
                       "Write a commented server configuration.\n";
    for (const auto& command : table.commands) {
        if (command.hidden) continue;
        text +=
            ".TP\n.BR " + escaped(page_name(command)) + " (1)\n" + escaped(command.summary) + "\n";
    }
    text += options_section("OPTIONS", global_options()) + exit_section() +
            ".SH FILES\n.TP\n.I \\(ti/.opensandbox/config.toml\nThe configuration of the command "
            "line.\n";
    return {std::string(kProgram) + ".1", std::move(text)};
}

}  // namespace

std::vector<ManPage> man_pages(const CommandTable& table, std::string_view version) {
    std::vector<ManPage> pages{program_page(table, version)};
    for (const auto& command : table.commands) {
        if (!command.hidden) pages.push_back(command_page(command, version));
    }
    return pages;
}

}  // namespace opensandbox::cli
