#pragma once

#include "cli/failure.hpp"
#include "net/stream.hpp"
#include "options/line_reader.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// What the command line understands, as data: parser, help and error texts all read it.
namespace opensandbox::cli {

class Invocation;

enum class Format : unsigned char { table, json, yaml, raw };
std::string_view to_string(Format format);

using options::Option;

struct Positional {
    std::string_view name;  ///< "SANDBOX_ID"
    std::string_view help;
    enum class Count : unsigned char {
        one,
        optional,
        many,
        payload,
        optional_payload,
        any_number,
    } count = Count::one;
};

/// What most commands begin with.
inline const Positional kSandboxId{"SANDBOX_ID", "The sandbox's id."};

struct Example {
    std::string_view line;  ///< without the program's name
    std::string_view says;
};

/// One command. Its group may be one in another ("command session"). A `payload` positional takes
/// the rest of the line as it stands, with or without
/// `--` before it.
struct Command {
    std::string_view group;  ///< "sandbox"; empty for top-level commands
    std::string_view name;   ///< "create"
    std::string_view summary;
    std::vector<Positional> positionals;
    std::vector<Option> options;
    std::vector<Format> formats;  ///< first is the default; empty: takes no -o
    std::vector<Example> examples;
    std::string_view details;  ///< further paragraphs of the help, may be empty
    bool hidden = false;       ///< for other programs: in no list
    std::function<Awaitable<Outcome>(Invocation&)> run;
    std::string_view alias = {};  ///< another name that is understood, too; not in the help

    [[nodiscard]] std::string full_name() const {
        return group.empty() ? std::string(name) : std::string(group) + " " + std::string(name);
    }
};

/// A command that prints one document: a table unless JSON or YAML is asked for.
Command make_document_command(std::string_view group, std::string_view name,
                              std::string_view summary, std::vector<Positional> positionals,
                              Awaitable<Outcome> (*run)(Invocation&));

struct Group {
    std::string_view name;  ///< two words for one in another group
    std::string_view summary;

    [[nodiscard]] bool is_nested() const { return name.find(' ') != std::string_view::npos; }
};

struct CommandTable {
    std::vector<Group> groups;
    std::vector<Command> commands;

    [[nodiscard]] const Command* find(std::string_view group, std::string_view name) const;
    [[nodiscard]] const Group* find_group(std::string_view name) const;
    /// What may follow a group's name: its commands, but hidden ones, and the groups in it.
    [[nodiscard]] std::vector<std::string_view> names_in(std::string_view group) const;
};

/// Options that every command takes, before or after its name.
const std::vector<Option>& global_options();

/// The tables that a line's options are in: its command's, once that is known, and the global one.
options::Tables understood_options(const Command* command);

/// All commands.
CommandTable make_command_table();

void add_run_command(CommandTable& table);
void add_sandbox_commands(CommandTable& table);
void add_command_commands(CommandTable& table);
void add_file_commands(CommandTable& table);
void add_image_commands(CommandTable& table);
void add_image_build_command(CommandTable& table);
void add_image_tag_command(CommandTable& table);
void add_snapshot_commands(CommandTable& table);
void add_session_commands(CommandTable& table);
void add_egress_commands(CommandTable& table);
void add_credential_vault_commands(CommandTable& table);
void add_template_commands(CommandTable& table);
void add_diagnostics_commands(CommandTable& table);
void add_devops_commands(CommandTable& table);
void add_image_transfer_commands(CommandTable& table);
void add_login_commands(CommandTable& table);
void add_config_commands(CommandTable& table);
void add_doctor_command(CommandTable& table);
void add_interactive_commands(CommandTable& table);
void add_skills_commands(CommandTable& table);

}  // namespace opensandbox::cli
