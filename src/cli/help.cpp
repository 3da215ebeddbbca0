#include "cli/help.hpp"

#include "options/help.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::size_t kHelpColumn = 32;

std::string row(std::string_view left, std::string_view right) {
    return options::help_row(left, right, kHelpColumn);
}

std::string option_rows(const std::vector<Option>& table) {
    return options::help_rows(table, kHelpColumn, true);
}

std::string usage_of(const Command& command) {
    std::string text = command.full_name() + " [OPTIONS]";
    for (const auto& positional : command.positionals) {
        std::string name(positional.name);
        switch (positional.count) {
            case Positional::Count::one: text += " " + name; break;
            case Positional::Count::optional: text += " [" + name + "]"; break;
            case Positional::Count::many: text += " " + name + "..."; break;
            case Positional::Count::payload: text += " -- " + name + "..."; break;
            case Positional::Count::optional_payload: text += " [-- " + name + "...]"; break;
            case Positional::Count::any_number: text += " [" + name + "...]"; break;
        }
    }
    return text;
}

std::string example_rows(const std::vector<Example>& examples, std::string_view program) {
    if (examples.empty()) return {};
    std::string text = "\nExamples:\n";
    for (const auto& example : examples) {
        text += "  # " + std::string(example.says) + "\n  " + std::string(program) + " " +
                std::string(example.line) + "\n";
    }
    return text;
}

std::string format_row(const std::vector<Format>& formats) {
    std::string names;
    for (Format format : formats)
        names += (names.empty() ? "" : ", ") + std::string(to_string(format));
    return row("-o, --output FORMAT", "Output format: " + names + ".");
}

}  // namespace

std::string help_text(const CommandTable& table, std::string_view program) {
    const std::string name(program);
    std::string text = "Usage: " + name + " [OPTIONS] COMMAND ...\n\n" +
                       "  Run untrusted code in sandboxes: one program is server, agent and\n"
                       "  command line.\n\nServer:\n" +
                       row("serve", "Start the server ('serve --help').") +
                       row("init-config", "Write a commented server configuration.") +
                       row("controller", "Start the Kubernetes controller ('controller --help').") +
                       row("mcp", "Serve agents by the Model Context Protocol ('mcp --help').") +
                       "\nCommands:\n";
    for (const auto& command : table.commands) {
        if (command.group.empty() && !command.hidden) text += row(command.name, command.summary);
    }
    for (const auto& group : table.groups) {
        if (!group.is_nested()) text += row(group.name, group.summary);
    }
    text += row("version", "Print the version.");
    text += row("help [COMMAND]", "Print help; 'help -o json': all of it, for programs.");
    text += "\nOptions:\n" + option_rows(global_options());
    return text + example_rows({{"serve", "start a server on this machine"},
                                {"run -- uname -a", "run one command in a fresh sandbox"},
                                {"sandbox create --image host", "make a sandbox to work in"}},
                               program);
}

std::string group_help_text(const CommandTable& table, const Group& group,
                            std::string_view program) {
    const std::string name = std::string(program) + " " + std::string(group.name);
    std::string text =
        "Usage: " + name + " COMMAND ...\n\n  " + std::string(group.summary) + "\n\nCommands:\n";
    std::vector<Example> examples;
    for (const auto& command : table.commands) {
        if (command.group != group.name) continue;
        text += row(command.name, command.summary);
        if (!command.examples.empty() && examples.size() < 3) {
            examples.push_back(command.examples.front());
        }
    }
    for (const auto& nested : table.groups) {
        if (!nested.name.starts_with(std::string(group.name) + " ")) continue;
        text += row(nested.name.substr(group.name.size() + 1), nested.summary);
    }
    text += "\n'" + name + " COMMAND --help' says more about one of them.\n";
    return text + example_rows(examples, program);
}

std::string command_help_text(const Command& command, std::string_view program) {
    std::string text = "Usage: " + std::string(program) + " " + usage_of(command) + "\n\n  " +
                       std::string(command.summary) + "\n";
    if (!command.details.empty()) {
        text += "\n  ";
        for (char c : command.details) {
            text += c;
            if (c == '\n') text += "  ";
        }
        text += "\n";
    }
    if (!command.positionals.empty()) {
        text += "\nArguments:\n";
        for (const auto& positional : command.positionals) {
            text += row(positional.name, positional.help);
        }
    }
    text += "\nOptions:\n" + option_rows(command.options);
    if (!command.formats.empty()) text += format_row(command.formats);
    text += row("-h, --help", "Print this help and exit.");
    text += "\n'" + std::string(program) + " --help' lists the options that all commands take.\n";
    return text + example_rows(command.examples, program);
}

}  // namespace opensandbox::cli
