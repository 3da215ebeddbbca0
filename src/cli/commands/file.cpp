#include "base/clock.hpp"
#include "cli/invocation.hpp"
#include "sdk/document/describe.hpp"

namespace opensandbox::cli {

void add_file_transfer_commands(CommandTable& table);

namespace {

constexpr std::string_view kPath = "PATH";
constexpr std::string_view kPaths = "PATHS";
const Positional kOnePath{kPath, "Path in the sandbox."};
const Positional kManyPaths{kPaths, "Paths in the sandbox.", Positional::Count::many};
const std::vector<Column> kInfoColumns{{"PATH", "path"},
                                       {"TYPE", "entry_type"},
                                       {"SIZE", "size"},
                                       {"MODE", "mode"},
                                       {"OWNER", "owner"},
                                       {"GROUP", "group"},
                                       {"MODIFIED_AT", "modified_at"}};

Outcome print_files(Invocation& invocation, const std::vector<sdk::FileInfo>& files) {
    const json::array rows = describe(files);
    return invocation.print_list(rows, rows, kInfoColumns);
}

/// One row for each path that something was done to.
Outcome print_paths(Invocation& invocation, const std::vector<std::string>& paths,
                    std::string_view status) {
    json::array rows;
    for (const auto& path : paths)
        rows.emplace_back(json::object{{"path", path}, {"status", status}});
    return invocation.print_list(rows, rows, {{"PATH", "path"}, {"STATUS", "status"}});
}

Awaitable<Outcome> info(Invocation& invocation) {
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto files = co_await sandbox->files().info(invocation.arguments().rest(kPaths));
    if (!files) co_return files.error();
    co_return print_files(invocation, *files);
}

Awaitable<Outcome> list_files(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto depth = arguments.integer("--depth", 1, 1000).value_or(1);
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto files = co_await sandbox->files().list(arguments.one(kPath), static_cast<unsigned>(depth));
    if (!files) co_return files.error();
    co_return print_files(invocation, *files);
}

Awaitable<Outcome> search(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const std::string pattern = arguments.get("--pattern").value_or("");
    auto files = co_await sandbox->files().search(arguments.one(kPath), pattern);
    if (!files) co_return files.error();
    co_return print_files(invocation, *files);
}

sdk::Permissions read_permissions(Arguments& arguments, std::optional<std::uint32_t> mode) {
    sdk::Permissions permissions;
    permissions.mode = arguments.has("--mode") ? arguments.file_mode("--mode") : mode;
    permissions.owner = arguments.get("--owner");
    permissions.group = arguments.get("--group");
    return permissions;
}

Awaitable<Outcome> make_directories(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::Permissions permissions = read_permissions(arguments, 0755);
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const auto paths = arguments.rest(kPaths);
    auto made = co_await sandbox->files().make_directories(paths, std::move(permissions));
    if (!made) co_return made.error();
    co_return print_paths(invocation, paths, "created");
}

Awaitable<Outcome> remove_files(Invocation& invocation) {
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const auto paths = invocation.arguments().rest(kPaths);
    auto removed = co_await sandbox->files().remove(paths);
    if (!removed) co_return removed.error();
    co_return print_paths(invocation, paths, "deleted");
}

Awaitable<Outcome> remove_directories(Invocation& invocation) {
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const auto paths = invocation.arguments().rest(kPaths);
    auto removed = co_await sandbox->files().remove_directories(paths);
    if (!removed) co_return removed.error();
    co_return print_paths(invocation, paths, "removed");
}

Awaitable<Outcome> move(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const std::string from = arguments.one("SOURCE");
    const std::string to = arguments.one("DESTINATION");
    auto moved = co_await sandbox->files().move(from, to);
    if (!moved) co_return moved.error();
    co_return invocation.print_done("Moved: " + from + " → " + to);
}

Awaitable<Outcome> change_mode(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::Permissions permissions = read_permissions(arguments, std::nullopt);
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const std::string path = arguments.one(kPath);
    auto changed = co_await sandbox->files().set_permissions(path, std::move(permissions));
    if (!changed) co_return changed.error();
    co_return invocation.print_done("Permissions set: " + path);
}

Awaitable<Outcome> replace(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const std::string old_text = arguments.get("--old").value_or("");
    if (old_text.empty()) arguments.refuse("--old: must not be empty");
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    const std::string path = arguments.one(kPath);
    const std::string new_text = arguments.get("--new").value_or("");
    auto count = co_await sandbox->files().replace(path, old_text, new_text);
    if (!count) co_return count.error();
    co_return invocation.print_done("Replaced in: " + path);
}

std::vector<Option> permission_options(bool mode_required) {
    return {{"--mode", 0, "OCTAL", "Permission bits, such as 644 or 0755.", false, mode_required},
            {"--owner", 0, "NAME", "Owner."},
            {"--group", 0, "NAME", "Group."}};
}

}  // namespace

void add_file_commands(CommandTable& table) {
    add_file_transfer_commands(table);

    Command command = make_document_command("file", "info", "Show what a path is.",
                                            {kSandboxId, kManyPaths}, info);
    command.examples = {{"file info SANDBOX_ID /etc/hosts /tmp", "two paths at once"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("file", "ls", "List a directory.", {kSandboxId, kOnePath},
                                    list_files);
    command.options = {{"--depth", 0, "NUMBER", "Levels to show (default 1)."}};
    command.examples = {{"file ls SANDBOX_ID /work", "what is in it"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("file", "search", "Find files by name.", {kSandboxId, kOnePath},
                                    search);
    command.options = {{"--pattern", 'p', "GLOB", "Glob for the base name.", false, true}};
    command.examples = {{"file search SANDBOX_ID /work -p '*.py'", "at any depth"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("file", "mkdir", "Make directories, with their parents.",
                                    {kSandboxId, kManyPaths}, make_directories);
    command.options = permission_options(false);
    command.examples = {{"file mkdir SANDBOX_ID /data/a /data/b --mode 700", "two of them"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("file", "rm", "Delete files.", {kSandboxId, kManyPaths},
                                    remove_files);
    command.examples = {{"file rm SANDBOX_ID /tmp/a /tmp/b", "two of them"}};
    table.commands.push_back(std::move(command));
    command = make_document_command("file", "rmdir", "Delete directories with all that is in them.",
                                    {kSandboxId, kManyPaths}, remove_directories);
    command.examples = {{"file rmdir SANDBOX_ID /data/old", "with its files"}};
    table.commands.push_back(std::move(command));

    command = make_document_command(
        "file", "mv", "Move or rename a file or directory.",
        {kSandboxId, {"SOURCE", "What to move."}, {"DESTINATION", "Its new path."}}, move);
    command.examples = {{"file mv SANDBOX_ID /tmp/a.txt /data/b.txt", "to another directory"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("file", "chmod", "Set permissions and owner.",
                                    {kSandboxId, kOnePath}, change_mode);
    command.options = permission_options(true);
    command.examples = {{"file chmod SANDBOX_ID /data/run.sh --mode 755", "make it executable"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("file", "replace", "Replace text in a file, everywhere in it.",
                                    {kSandboxId, kOnePath}, replace);
    command.options = {{"--old", 0, "TEXT", "Text to search for.", false, true},
                       {"--new", 0, "TEXT", "Text to put there.", false, true}};
    command.examples = {{"file replace SANDBOX_ID /etc/motd --old hello --new bye", "one word"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
