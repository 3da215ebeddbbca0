#include "cli/command_table.hpp"

namespace opensandbox::cli {

void add_shell_command(CommandTable& table);
void add_logs_command(CommandTable& table);
void add_top_command(CommandTable& table);
void add_watch_command(CommandTable& table);
void add_cp_command(CommandTable& table);
void add_port_forward_command(CommandTable& table);
void add_code_commands(CommandTable& table);
void add_pool_commands(CommandTable& table);
void add_completion_commands(CommandTable& table);
void add_man_command(CommandTable& table);

void add_interactive_commands(CommandTable& table) {
    table.groups.push_back({"code", "Run code in interpreters of a sandbox that remember."});
    table.groups.push_back({"pool", "Keep sandboxes ready on the server."});
    add_shell_command(table);
    add_logs_command(table);
    add_top_command(table);
    add_watch_command(table);
    add_cp_command(table);
    add_port_forward_command(table);
    add_code_commands(table);
    add_pool_commands(table);
    add_completion_commands(table);
    add_man_command(table);
}

}  // namespace opensandbox::cli
