#include "mcp/tool.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/tools/file_mode.hpp"
#include "mcp/workspace.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

constexpr std::int64_t kDeepest = 32;

std::vector<const json::object*> entries_of(const Call& call) {
    std::vector<const json::object*> entries;
    for (const json::value& entry : call.arguments().at("entries").as_array())
        entries.push_back(&entry.as_object());
    return entries;
}

std::string member(const json::object& entry, std::string_view name) {
    return std::string(entry.at(name).as_string());
}

Awaitable<ToolResult> remove_files(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto removed = co_await sandbox->files().remove(call.texts("paths"));
    if (!removed) co_return removed.error();
    co_return status_document("deleted");
}

Awaitable<ToolResult> remove_directories(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto removed = co_await sandbox->files().remove_directories(call.texts("paths"));
    if (!removed) co_return removed.error();
    co_return status_document("deleted");
}

json::object list_document(const std::vector<sdk::FileInfo>& files) {
    json::object out;
    out["result"] = sdk::describe(files);
    return out;
}

Awaitable<ToolResult> search(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto found = co_await sandbox->files().search(call.text("path"), call.text("pattern"));
    if (!found) co_return found.error();
    co_return list_document(*found);
}

Awaitable<ToolResult> list_files(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto found = co_await sandbox->files().list(call.text("path"),
                                                static_cast<unsigned>(call.integer("depth", 1)));
    if (!found) co_return found.error();
    co_return list_document(*found);
}

Awaitable<ToolResult> make_directories(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    std::vector<sdk::Permissions> all;
    for (const json::object* entry : entries_of(call)) {
        auto permissions = read_permissions(*entry);
        if (!permissions) co_return permissions.error();
        all.push_back(std::move(*permissions));
    }
    auto permissions = all.begin();
    for (const json::object* entry : entries_of(call)) {
        std::vector<std::string> path{member(*entry, "path")};
        auto made =
            co_await sandbox->files().make_directories(std::move(path), std::move(*permissions++));
        if (!made) co_return made.error().within(member(*entry, "path"));
    }
    co_return status_document("created");
}

Awaitable<ToolResult> move(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    for (const json::object* entry : entries_of(call)) {
        auto moved =
            co_await sandbox->files().move(member(*entry, "source"), member(*entry, "destination"));
        if (!moved) co_return moved.error().within(member(*entry, "source"));
    }
    co_return status_document("moved");
}

Awaitable<ToolResult> replace(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    json::array counts;
    for (const json::object* entry : entries_of(call)) {
        const std::string path = member(*entry, "path");
        auto count = co_await sandbox->files().replace(path, member(*entry, "old_content"),
                                                       member(*entry, "new_content"));
        if (!count) co_return count.error().within(path);
        json::object row;
        row["path"] = path;
        row["replaced_count"] = *count;
        counts.emplace_back(std::move(row));
    }
    json::object out;
    out["result"] = std::move(counts);
    co_return out;
}

json::object paths_input() {
    Object members = with_sandbox();
    members.required("paths", schema::list_of(schema::text()), "Absolute paths");
    return add_connect_if_missing(members).build();
}

json::object entries_input(json::object entry) {
    Object members = with_sandbox();
    members.required("entries", schema::list_of(std::move(entry)));
    return add_connect_if_missing(members).build();
}

json::object files_output() {
    return Object().required("result", schema::list_of(file_schema())).build(true);
}

json::object search_input() {
    Object members = with_sandbox();
    members.required("path", schema::text(), "Directory to search, at any depth")
        .required("pattern", schema::text(), "Glob for the base name: *.py");
    return add_connect_if_missing(members).build();
}

json::object list_input() {
    Object members = with_sandbox();
    members.required("path", schema::text(), "Directory")
        .optional("depth", schema::integer(1, kDeepest), 1, "Levels");
    return add_connect_if_missing(members).build();
}

json::object directory_entry() {
    return Object()
        .required("path", schema::text())
        .optional("mode", schema::integer(), 755, "Octal digits as a number")
        .nullable("owner", schema::text())
        .nullable("group", schema::text())
        .build();
}

json::object move_entry() {
    return Object()
        .required("source", schema::text())
        .required("destination", schema::text(), "The new path itself")
        .build();
}

json::object replace_entry() {
    return Object()
        .required("path", schema::text())
        .required("old_content", schema::text(), "Exact text; every occurrence is replaced")
        .required("new_content", schema::text())
        .build();
}

json::object counts_output() {
    const json::object row =
        Object()
            .required("path", schema::text())
            .required("replaced_count", schema::integer(), "0: the old text was not there")
            .build(true);
    return Object().required("result", schema::list_of(row)).build(true);
}

}  // namespace

void add_file_tools(std::vector<Tool>& tools) {
    tools.push_back({"file_delete", "Delete files", "Deletes files; missing ones are no error.",
                     Effect::changes, paths_input(), status_schema(), remove_files});
    tools.push_back({"file_search", "Find files",
                     "Files below a directory whose name matches a glob.", Effect::reads,
                     search_input(), files_output(), search});
    tools.push_back({"file_list", "List a directory", "What is in a directory, with details.",
                     Effect::reads, list_input(), files_output(), list_files});
    tools.push_back({"file_create_directories", "Make directories",
                     "Makes directories with their parents; ones that exist are no error.",
                     Effect::adds, entries_input(directory_entry()), status_schema(),
                     make_directories});
    tools.push_back({"file_delete_directories", "Delete directories",
                     "Deletes directories with all that is in them.", Effect::changes,
                     paths_input(), status_schema(), remove_directories});
    tools.push_back({"file_move", "Move files", "Moves or renames files and directories, in order.",
                     Effect::destroys, entries_input(move_entry()), status_schema(), move});
    tools.push_back({"file_replace_contents", "Replace text in files",
                     "Replaces exact text in files and says how often it was there.",
                     Effect::destroys, entries_input(replace_entry()), counts_output(), replace});
}

}  // namespace opensandbox::mcp
