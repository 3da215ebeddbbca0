#include "cli/command_table.hpp"

#include <algorithm>

namespace opensandbox::cli {

std::string_view to_string(Format format) {
    switch (format) {
        case Format::table: return "table";
        case Format::json: return "json";
        case Format::yaml: return "yaml";
        case Format::raw: return "raw";
    }
    return "table";
}

const Command* CommandTable::find(std::string_view group, std::string_view name) const {
    auto found = std::ranges::find_if(commands, [&](const Command& c) {
        return c.group == group && (c.name == name || (!c.alias.empty() && c.alias == name));
    });
    return found == commands.end() ? nullptr : &*found;
}

const Group* CommandTable::find_group(std::string_view name) const {
    auto found = std::ranges::find(groups, name, &Group::name);
    return found == groups.end() ? nullptr : &*found;
}

std::vector<std::string_view> CommandTable::names_in(std::string_view group) const {
    std::vector<std::string_view> names;
    for (const auto& command : commands) {
        if (command.group == group && !command.hidden) names.push_back(command.name);
    }
    const std::string prefix = group.empty() ? "" : std::string(group) + " ";
    for (const auto& inner : groups) {
        if (!inner.name.starts_with(prefix)) continue;
        const std::string_view name = inner.name.substr(prefix.size());
        if (name.find(' ') == std::string_view::npos) names.push_back(name);
    }
    return names;
}

const std::vector<Option>& global_options() {
    static const std::vector<Option> options{
        {"--server", 0, "ADDRESS", "Server to talk to: HOST or HOST:PORT. Also --domain."},
        {"--domain", 0, "ADDRESS", "The same as --server (env OPEN_SANDBOX_DOMAIN)."},
        {"--api-key", 0, "KEY",
         "API key (env OPEN_SANDBOX_API_KEY); found by itself for the\n"
         "server on this machine."},
        {"--protocol", 0, "http|https", "Protocol (env OPEN_SANDBOX_PROTOCOL; default http)."},
        {"--request-timeout", 0, "SECONDS", "Limit for one request (default 30)."},
        {"--use-server-proxy", 0, "", "Reach sandboxes through the server."},
        {"--no-use-server-proxy", 0, "", "Reach sandboxes directly (default)."},
        {"--config", 0, "PATH", "Configuration file (default ~/.opensandbox/config.toml)."},
        {"--output", 'o', "FORMAT",
         "Output format: table, json, yaml or raw, as the command allows."},
        {"--no-color", 0, "", "No colours, not even on a terminal."},
        {"--verbose", 'v', "", "Say more about failures."},
        {"--version", 0, "", "Print the version and exit."},
        {"--help", 'h', "", "Print this help and exit."},
    };
    return options;
}

options::Tables understood_options(const Command* command) {
    if (!command) return {global_options()};
    return {command->options, global_options()};
}

Command make_document_command(std::string_view group, std::string_view name,
                              std::string_view summary, std::vector<Positional> positionals,
                              Awaitable<Outcome> (*run)(Invocation&)) {
    Command command;
    command.group = group;
    command.name = name;
    command.summary = summary;
    command.positionals = std::move(positionals);
    command.formats = {Format::table, Format::json, Format::yaml};
    command.run = run;
    return command;
}

CommandTable make_command_table() {
    CommandTable table;
    table.groups = {
        {"sandbox", "Create, list, inspect and delete sandboxes."},
        {"command", "Run commands in a sandbox."},
        {"file", "Read, write and move files of a sandbox."},
        {"image", "Manage the server's images."},
        {"snapshot", "Keep file systems of sandboxes and start from them."},
        {"command session", "Run commands in a shell that remembers where it is."},
        {"egress", "Show and change what a sandbox may reach."},
        {"credential-vault", "Let requests of a sandbox carry credentials it never sees."},
        {"credential-vault credential", "Show the credentials of a vault."},
        {"credential-vault binding", "Show which requests a vault is for."},
        {"template", "Build golden images to start sandboxes from."},
        {"diagnostics", "Show what a server knows of a sandbox's running."},
        {"devops", "Pages for operators about a sandbox."},
        {"config", "Show and change this program's configuration."}};
    add_run_command(table);
    add_sandbox_commands(table);
    add_command_commands(table);
    add_file_commands(table);
    add_image_commands(table);
    add_image_build_command(table);
    add_image_tag_command(table);
    add_snapshot_commands(table);
    add_image_transfer_commands(table);
    add_session_commands(table);
    add_egress_commands(table);
    add_credential_vault_commands(table);
    add_template_commands(table);
    add_diagnostics_commands(table);
    add_devops_commands(table);
    add_login_commands(table);
    add_config_commands(table);
    add_doctor_command(table);
    add_interactive_commands(table);
    add_skills_commands(table);
    return table;
}

}  // namespace opensandbox::cli
