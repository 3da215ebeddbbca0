#include "base/error.hpp"
#include "cli/help.hpp"
#include "cli/invocation.hpp"
#include "version.hpp"

#include <filesystem>
#include <fstream>

namespace opensandbox::cli {

namespace {

Awaitable<Outcome> man(Invocation& invocation) {
    const auto pages = man_pages(make_command_table(), kVersion);
    const auto given = invocation.arguments().rest("DIRECTORY");
    if (given.empty()) co_return invocation.print_raw(pages.front().text);
    const std::filesystem::path directory(given.front());
    std::error_code failed;
    std::filesystem::create_directories(directory, failed);
    if (failed) {
        co_return sdk::Error(sdk::ErrorCode::io, directory.string() + ": " + failed.message());
    }
    for (const auto& page : pages) {
        const auto path = directory / page.file_name;
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        file << page.text;
        file.close();
        if (!file) co_return sdk::Error(sdk::ErrorCode::io, path.string() + ": cannot be written");
    }
    co_return invocation.print_done("Written: " + std::to_string(pages.size()) + " pages to " +
                                    directory.string());
}

}  // namespace

void add_man_command(CommandTable& table) {
    Command command;
    command.name = "man";
    command.summary = "Print this program's manual page, or write all of them.";
    command.details = "One page for the program and one for each command, for man(1).";
    command.positionals = {{"DIRECTORY", "Where to write them; made when it is missing.",
                            Positional::Count::optional}};
    command.examples = {{"man /usr/local/share/man/man1", "install them"}};
    command.run = man;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
