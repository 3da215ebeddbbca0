#include "sdk/fields/snapshot.hpp"

#include "mcp/document_schema.hpp"
#include "mcp/tool.hpp"
#include "mcp/tools/create.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/workspace.hpp"
#include "opensandbox/snapshots.hpp"
#include "sdk/fields/page.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

constexpr double kDefaultWait = 600;
constexpr std::int64_t kLargestPage = 200;

sdk::Snapshots snapshots_of(Call& call) {
    return sdk::Snapshots(call.workspace().server());
}

Awaitable<ToolResult> create_snapshot(Call& call) {
    auto snapshots = snapshots_of(call);
    auto made = co_await snapshots.create(call.text("sandbox_id"), call.optional_text("name"));
    if (!made) co_return made.error();
    call.progress(0, {}, "Snapshot " + made->id + " is being made");
    const std::string id = made->id;
    const auto limit = milliseconds_of(call.number("wait_seconds", kDefaultWait));
    if (limit.count() > 0) made = co_await snapshots.wait(id, limit);
    if (!made && made.error().code() == sdk::ErrorCode::timeout) made = co_await snapshots.get(id);
    if (!made) co_return made.error();
    co_return sdk::describe(*made);
}

Awaitable<ToolResult> list_snapshots(Call& call) {
    sdk::SnapshotFilter filter;
    filter.sandbox_id = call.optional_text("sandbox_id");
    filter.name = call.optional_text("name");
    filter.states = call.texts("states");
    if (auto page = call.integer("page", 0); page > 0) filter.page = static_cast<unsigned>(page);
    if (auto size = call.integer("page_size", 0); size > 0) {
        filter.page_size = static_cast<unsigned>(size);
    }
    auto page = co_await snapshots_of(call).list(std::move(filter));
    if (!page) co_return page.error();
    co_return sdk::describe(*page);
}

Awaitable<ToolResult> get_snapshot(Call& call) {
    auto info = co_await snapshots_of(call).get(call.text("snapshot_id"));
    if (!info) co_return info.error();
    co_return sdk::describe(*info);
}

Awaitable<ToolResult> remove_snapshot(Call& call) {
    auto removed = co_await snapshots_of(call).remove(call.text("snapshot_id"));
    if (!removed) co_return removed.error();
    co_return status_document("deleted");
}

Awaitable<ToolResult> restore(Call& call) {
    sdk::CreateOptions options;
    options.snapshot_id = call.text("snapshot_id");
    if (options.snapshot_id.empty()) co_return invalid("snapshot_id", "expected an id");
    options.timeout = whole_seconds(call.number("timeout_seconds", kDefaultLifetime));
    options.ready_timeout = milliseconds_of(call.number("ready_timeout_seconds", kDefaultReady));
    options.environment = call.map("env");
    for (auto& [name, value] : call.map("metadata"))
        options.metadata[name] = value;
    auto resource = call.map("resource");
    if (!resource.empty()) options.resource_limits.clear();
    for (auto& [name, value] : resource)
        options.resource_limits[name] = value;
    std::string what = "snapshot " + options.snapshot_id;
    co_return co_await create_sandbox(call, std::move(options), std::move(what));
}

json::object info_schema() {
    return document_schema<sdk::SnapshotInfo>(sdk::fields::kSnapshotMembers);
}

json::object one_input() {
    return Object().required("snapshot_id", schema::text(), "Id of the snapshot").build();
}

json::object snapshot_input() {
    Object members = with_sandbox();
    return members.nullable("name", schema::text(), "To find it by")
        .optional("wait_seconds", schema::number(), kDefaultWait,
                  "How long to wait until it is made; 0: not at all")
        .build();
}

json::object snapshots_input() {
    return Object()
        .nullable("sandbox_id", schema::text(), "Only of this sandbox")
        .nullable("name", schema::text(), "Only with this name")
        .nullable("states", schema::list_of(schema::text()), "Any of them: [\"Ready\"]")
        .nullable("page", schema::integer(1, INT32_MAX))
        .nullable("page_size", schema::integer(1, kLargestPage))
        .build();
}

json::object restore_input() {
    return Object()
        .required("snapshot_id", schema::text(), "Must be Ready")
        .optional("timeout_seconds", schema::number(), kDefaultLifetime, "Lifetime, at least 60")
        .optional("ready_timeout_seconds", schema::number(), kDefaultReady)
        .nullable("env", schema::map_of_text())
        .nullable("metadata", schema::map_of_text())
        .nullable("resource", schema::map_of_text())
        .build();
}

}  // namespace

void add_snapshot_tools(std::vector<Tool>& tools) {
    tools.push_back({"snapshot_create", "Keep a file system",
                     "Keeps the file system of a sandbox as it is now, to start others from it "
                     "with snapshot_restore. It outlives the sandbox.",
                     Effect::adds, snapshot_input(), info_schema(), create_snapshot});
    tools.push_back({"snapshot_list", "List snapshots", "Snapshots of the server, page by page.",
                     Effect::reads, snapshots_input(),
                     document_schema<sdk::SnapshotPage>(
                         sdk::fields::page_members(sdk::fields::kSnapshotMembers)),
                     list_snapshots});
    tools.push_back({"snapshot_get", "Describe a snapshot", "State and origin of one snapshot.",
                     Effect::reads, one_input(), info_schema(), get_snapshot});
    tools.push_back({"snapshot_delete", "Delete a snapshot",
                     "Deletes a snapshot; sandboxes made from it stay.", Effect::destroys,
                     one_input(), status_schema(), remove_snapshot});
    tools.push_back({"snapshot_restore", "Start from a snapshot",
                     "Starts a new sandbox whose file system is that of the snapshot; may be done "
                     "any number of times.",
                     Effect::adds, restore_input(), sandbox_schema(), restore});
}

}  // namespace opensandbox::mcp
