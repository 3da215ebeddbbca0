#include "mcp/tool.hpp"
#include "mcp/tools/create.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/workspace.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

constexpr std::int64_t kDefaultPolling = 200;

Awaitable<ToolResult> with_info(Workspace& workspace, sdk::Sandbox sandbox) {
    auto info = co_await sandbox.info();
    if (!info) co_return info.error();
    workspace.remember(std::move(sandbox));
    co_return sandbox_document(*info);
}

sdk::Result<sdk::CreateOptions> read_create(const Call& call) {
    sdk::CreateOptions options(call.text("image"));
    if (options.image.empty()) return invalid("image", "expected a reference such as python:3.12");
    auto user = call.optional_text("auth_username");
    auto password = call.optional_text("auth_password");
    if (user.has_value() != password.has_value()) {
        return invalid(user ? "auth_password" : "auth_username",
                       "auth_username and auth_password go together");
    }
    if (user) {
        sdk::RegistryAuth auth;
        auth.username = *user;
        auth.password = *password;
        options.image_auth = std::move(auth);
    }
    options.timeout = whole_seconds(call.number("timeout_seconds", kDefaultLifetime));
    options.ready_timeout = milliseconds_of(call.number("ready_timeout_seconds", kDefaultReady));
    options.skip_health_check = call.flag("skip_health_check");
    options.environment = call.map("env");
    for (auto& [name, value] : call.map("metadata"))
        options.metadata[name] = value;
    for (auto& [name, value] : call.map("extensions"))
        options.extensions[name] = value;
    auto resource = call.map("resource");
    if (!resource.empty()) options.resource_limits.clear();
    for (auto& [name, value] : resource)
        options.resource_limits[name] = value;
    auto entrypoint = call.texts("entrypoint");
    if (!entrypoint.empty()) options.entrypoint = std::move(entrypoint);
    if (const json::value* policy = json::find(call.arguments(), "network_policy")) {
        options.network_policy = json::serialize(*policy);
    }
    return options;
}

}  // namespace

/// Goes on when it is given up, so that what was made can be deleted again.
Awaitable<ToolResult> create_sandbox(Call& call, sdk::CreateOptions options, std::string what) {
    call.on_cancel([] {});
    constexpr double kSteps = 2;
    call.progress(0, kSteps, "Creating a sandbox of " + what);
    auto sandbox = co_await sdk::Sandbox::create(call.workspace().server(), std::move(options));
    if (!sandbox) co_return sandbox.error();
    if (call.cancelled()) {
        auto undone = co_await sandbox->kill();
        co_return undone ? cancelled_error() : undone.error();
    }
    call.progress(1, kSteps, "Sandbox " + sandbox->id() + " answers");
    auto result = co_await with_info(call.workspace(), *sandbox);
    if (call.cancelled()) {
        call.workspace().forget(sandbox->id());
        auto undone = co_await sandbox->kill();
        co_return undone ? cancelled_error() : undone.error();
    }
    call.progress(kSteps, kSteps, "Ready");
    co_return result;
}

namespace {

Awaitable<ToolResult> create_described(Call& call) {
    auto options = read_create(call);
    if (!options) co_return options.error();
    std::string what = options->image;
    co_return co_await create_sandbox(call, std::move(*options), std::move(what));
}

Awaitable<ToolResult> connect(Call& call) {
    sdk::ConnectOptions options;
    options.ready_timeout = milliseconds_of(call.number("connect_timeout_seconds", kDefaultReady));
    options.skip_health_check = call.flag("skip_health_check");
    auto sandbox = co_await sdk::Sandbox::connect(call.workspace().server(),
                                                  call.text("sandbox_id"), std::move(options));
    if (!sandbox) co_return sandbox.error();
    co_return co_await with_info(call.workspace(), std::move(*sandbox));
}

Awaitable<ToolResult> kill(Call& call) {
    const std::string id = call.text("sandbox_id");
    auto killed = co_await call.workspace().sandboxes().kill(id);
    if (!killed) co_return killed.error();
    call.workspace().forget(id);
    co_return status_document("killed");
}

Awaitable<ToolResult> get_info(Call& call) {
    auto info = co_await call.workspace().sandboxes().get(call.text("sandbox_id"));
    if (!info) co_return info.error();
    co_return sdk::describe(*info);
}

sdk::Result<sdk::ListFilter> read_filter(const Call& call) {
    sdk::ListFilter filter;
    const json::value* given = json::find(call.arguments(), "filter");
    if (given == nullptr) return filter;
    const json::object& from = given->as_object();
    if (auto states = json::get_strings(from, "states"); states && states->has_value()) {
        filter.states = std::move(**states);
    }
    if (auto metadata = json::get_string_map(from, "metadata"); metadata && metadata->has_value()) {
        for (auto& [name, value] : **metadata)
            filter.metadata[name] = value;
    }
    constexpr std::int64_t kLargestPage = 200;
    auto size = json::get_integer(from, "page_size");
    if (size && size->has_value()) {
        if (**size < 1 || **size > kLargestPage) {
            return invalid("filter.page_size", "expected 1 to 200");
        }
        filter.page_size = static_cast<unsigned>(**size);
    }
    auto page = json::get_integer(from, "page");
    if (page && page->has_value()) {
        if (**page < 1 || **page > INT32_MAX) return invalid("filter.page", "expected 1 or more");
        filter.page = static_cast<unsigned>(**page);
    }
    return filter;
}

Awaitable<ToolResult> list_sandboxes(Call& call) {
    auto filter = read_filter(call);
    if (!filter) co_return filter.error();
    call.progress(0, 1, "Listing sandboxes");
    auto page = co_await call.workspace().sandboxes().list(std::move(*filter));
    if (!page) co_return page.error();
    json::array infos;
    for (const auto& info : page->items)
        infos.emplace_back(sdk::describe(info));
    call.progress(1, 1, std::to_string(infos.size()) + " sandboxes");
    json::object out;
    out["sandbox_infos"] = std::move(infos);
    out["pagination"] = sdk::describe(page->pagination);
    co_return out;
}

json::object policy_schema() {
    return Object()
        .optional("defaultAction", schema::or_null(schema::one_of({"allow", "deny"})), "deny",
                  "For what no rule names")
        .nullable("egress", schema::list_of(network_rule_schema()),
                  "The first rule that fits decides")
        .build();
}

json::object create_input() {
    return Object()
        .required(
            "image", schema::text(),
            "Image to start, such as python:3.12; \"host\" is always there on a native server")
        .nullable("auth_username", schema::text(), "Login of the image's registry")
        .nullable("auth_password", schema::text())
        .optional("timeout_seconds", schema::number(), 600,
                  "Lifetime, at least 60; sandbox_renew prolongs it")
        .optional("ready_timeout_seconds", schema::number(), 30,
                  "How long to wait until it answers")
        .optional("health_check_polling_interval_ms", schema::integer(), kDefaultPolling,
                  "Accepted for compatibility: polling adapts itself")
        .optional("skip_health_check", schema::boolean(), false, "Do not wait until it answers")
        .nullable("env", schema::map_of_text(), "Environment variables")
        .nullable("metadata", schema::map_of_text(), "Labels, to find it with sandbox_list")
        .nullable("resource", schema::map_of_text(),
                  "Limits: {\"cpu\": \"1\", \"memory\": \"2Gi\"}")
        .nullable("network_policy", policy_schema(), "What it may reach")
        .nullable("extensions", schema::map_of_text(), "Passed to the server as they are")
        .nullable("entrypoint", schema::list_of(schema::text()),
                  "Command that keeps it alive; default: one that waits")
        .build();
}

json::object connect_input() {
    Object members = with_sandbox();
    return members
        .optional("connect_timeout_seconds", schema::number(), 30,
                  "How long to wait until it answers")
        .optional("health_check_polling_interval_ms", schema::integer(), kDefaultPolling,
                  "Accepted for compatibility: polling adapts itself")
        .optional("skip_health_check", schema::boolean(), false, "Do not wait until it answers")
        .build();
}

json::object sandboxes_input() {
    const json::object filter =
        Object()
            .nullable("states", schema::list_of(schema::text()), "Any of them: [\"Running\"]")
            .nullable("metadata", schema::map_of_text(), "All of them")
            .nullable("page_size", schema::integer(), "1 to 200")
            .nullable("page", schema::integer(), "From 1")
            .build();
    return Object().nullable("filter", filter, "Which sandboxes; missing: all").build();
}

json::object list_output() {
    return Object()
        .required("sandbox_infos", schema::list_of(sandbox_info_schema()))
        .required("pagination", pagination_schema())
        .build(true);
}

}  // namespace

void add_sandbox_tools(std::vector<Tool>& tools) {
    tools.push_back(
        {"sandbox_create", "Create a sandbox",
         "Starts a new isolated sandbox from an image and waits until it answers. Keep "
         "the sandbox_id: every other tool takes it. It ends by itself after "
         "timeout_seconds. With a network_policy whose defaultAction is deny it reaches "
         "only the targets allowed there.",
         Effect::adds, create_input(), sandbox_schema(), create_described});
    tools.push_back({"sandbox_connect", "Connect to a sandbox",
                     "Makes a sandbox that exists already usable in this session, by its id (from "
                     "sandbox_list or an earlier session).",
                     Effect::reads, connect_input(), sandbox_schema(), connect});
    tools.push_back({"sandbox_kill", "Delete a sandbox",
                     "Ends a sandbox and deletes its file system. Cannot be undone: fetch what is "
                     "needed with file_read or keep it with snapshot_create first.",
                     Effect::destroys, with_sandbox().build(), status_schema(), kill});
    tools.push_back({"sandbox_get_info", "Describe a sandbox",
                     "State with reason and message, image, times, metadata of one sandbox.",
                     Effect::reads, with_sandbox().build(), sandbox_info_schema(), get_info});
    tools.push_back({"sandbox_list", "List sandboxes",
                     "Sandboxes of the server, newest first, page by page; a filter narrows by "
                     "state and metadata.",
                     Effect::reads, sandboxes_input(), list_output(), list_sandboxes});
}

}  // namespace opensandbox::mcp
