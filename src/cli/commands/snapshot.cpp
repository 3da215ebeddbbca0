#include "cli/image_options.hpp"
#include "cli/invocation.hpp"
#include "opensandbox/snapshots.hpp"
#include "sdk/document/describe.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::string_view kSnapshotIds = "SNAPSHOT_ID";
const Positional kOneSnapshot{kSnapshotIds, "The snapshot's id."};
constexpr std::chrono::minutes kLongest{30};

/// One that failed is told, and the exit code says so.
Outcome print_created(Invocation& invocation, const sdk::SnapshotInfo& info) {
    json::object document;
    document["id"] = info.id;
    document["sandbox_id"] = info.sandbox_id;
    document["name"] = info.name ? json::value(*info.name) : json::value();
    document["status"] = info.state;
    if (info.state == "Failed" && info.message) document["message"] = *info.message;
    Outcome outcome = invocation.print_object(document);
    return info.state == "Failed" ? Outcome(kFailed) : outcome;
}

Awaitable<Outcome> create_snapshot(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Snapshots snapshots(*connection);
    auto made = co_await snapshots.create(arguments.one("SANDBOX_ID"), arguments.get("--name"));
    if (!made) co_return made.error();
    if (!arguments.has("--no-wait")) {
        const std::string id = made->id;
        made = co_await snapshots.wait(id, kLongest);
        if (!made) co_return made.error();
    }
    co_return print_created(invocation, *made);
}

Awaitable<Outcome> list_snapshots(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::SnapshotFilter filter;
    filter.sandbox_id = arguments.get("--sandbox-id");
    filter.name = arguments.get("--name");
    for (const auto& state : arguments.all("--state")) {
        auto known =
            arguments.choice("--state", state, {"Creating", "Ready", "Failed", "Deleting"});
        if (known) filter.states.push_back(std::move(*known));
    }
    if (auto page = arguments.integer("--page", 1, INT32_MAX)) {
        filter.page = static_cast<unsigned>(*page);
    }
    if (auto size = arguments.integer("--page-size", 1, 200)) {
        filter.page_size = static_cast<unsigned>(*size);
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Snapshots snapshots(*connection);
    auto page = co_await snapshots.list(std::move(filter));
    if (!page) co_return page.error();
    const json::object document = describe(*page);
    co_return invocation.print_list(document, document.at("items").as_array(),
                                    {{"ID", "id"},
                                     {"STATUS", "status.state"},
                                     {"SANDBOX_ID", "sandbox_id"},
                                     {"NAME", "name"},
                                     {"CREATED_AT", "created_at"}});
}

Awaitable<Outcome> get_snapshot(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Snapshots snapshots(*connection);
    auto info = co_await snapshots.get(invocation.arguments().one(kSnapshotIds));
    if (!info) co_return info.error();
    co_return invocation.print_object(describe(*info));
}

Awaitable<Outcome> remove_snapshot(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Snapshots snapshots(*connection);
    const std::string id = invocation.arguments().one(kSnapshotIds);
    auto removed = co_await snapshots.remove(id);
    if (!removed) co_return removed.error();
    co_return invocation.print_done("Snapshot deleted: " + id);
}

Awaitable<Outcome> export_snapshot(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto change = read_image_config(arguments);
    auto reference = arguments.get("--to-image");
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Snapshots snapshots(*connection);
    auto image = co_await snapshots.make_image(arguments.one(kSnapshotIds), reference.value_or(""),
                                               std::move(change));
    if (!image) co_return image.error();
    co_return invocation.print_object(describe(*image));
}

}  // namespace

void add_snapshot_commands(CommandTable& table) {
    Command command =
        make_document_command("snapshot", "create", "Keep the file system of a running sandbox.",
                              {{"SANDBOX_ID", "The sandbox's id."}}, create_snapshot);
    command.options = {{"--name", 'n', "NAME", "Name to find it by."},
                       {"--no-wait", 0, "", "Do not wait until it is made."}};
    command.examples = {{"snapshot create SANDBOX_ID -n before-upgrade", "keep one"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("snapshot", "list", "List snapshots.", {}, list_snapshots);
    command.options = {
        {"--sandbox-id", 0, "SANDBOX_ID", "Only of this sandbox.", false, false, "--sandbox"},
        {"--name", 'n', "NAME", "Only with this name."},
        {"--state", 's', "STATE", "Only in this state.", true},
        {"--page", 0, "NUMBER", "Page to show, from 1."},
        {"--page-size", 0, "NUMBER", "Snapshots a page, 1 to 200 (default 20)."}};
    command.examples = {
        {"snapshot list --sandbox-id SANDBOX_ID -s ready", "what can be started from"},
        {"snapshot list --name before-upgrade -o json", "by name, for scripts"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("snapshot", "get", "Show one snapshot.", {kOneSnapshot},
                                    get_snapshot);
    command.examples = {{"snapshot get SNAPSHOT_ID", "whether it is ready"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("snapshot", "delete",
                                    "Delete a snapshot; sandboxes made from it stay.",
                                    {kOneSnapshot}, remove_snapshot);
    command.alias = "remove";
    command.examples = {{"snapshot delete SNAPSHOT_ID", "when it is not needed any more"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("snapshot", "export", "Make an image of a snapshot.",
                                    {kOneSnapshot}, export_snapshot);
    command.options = {
        {"--to-image", 0, "REFERENCE", "NAME or NAME:TAG of the image.", false, true}};
    for (const Option& option : image_config_options())
        command.options.push_back(option);
    command.examples = {
        {"snapshot export SNAPSHOT_ID --to-image mine:1", "an image to start from"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
