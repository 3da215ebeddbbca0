#include "base/clock.hpp"
#include "base/log.hpp"
#include "mcp/document_schema.hpp"
#include "mcp/tool.hpp"
#include "mcp/tools/describe.hpp"
#include "mcp/workspace.hpp"
#include "net/task.hpp"
#include "sdk/fields/endpoint.hpp"
#include "sdk/fields/metrics.hpp"

namespace opensandbox::mcp {

using schema::Object;

namespace {

constexpr std::int64_t kMostCopies = 100;
constexpr std::int64_t kLastPort = 65535;
constexpr double kDefaultStateWait = 30;
constexpr std::chrono::milliseconds kStatePolling{100};

Awaitable<ToolResult> renew(Call& call) {
    const double seconds = call.number("timeout_seconds", 0);
    if (!(seconds > 0)) co_return invalid("timeout_seconds", "expected more than 0");
    auto expires = co_await call.workspace().sandboxes().renew(call.text("sandbox_id"),
                                                               whole_seconds(seconds));
    if (!expires) co_return expires.error();
    json::object out;
    out["expires_at"] = to_rfc3339(*expires);
    co_return out;
}

Awaitable<ToolResult> metrics(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto sample = co_await sandbox->metrics();
    if (!sample) co_return sample.error();
    co_return sdk::describe(*sample);
}

Awaitable<ToolResult> healthcheck(Call& call) {
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto healthy = co_await sandbox->is_healthy();
    if (!healthy) co_return healthy.error();
    json::object out;
    out["sandbox_id"] = sandbox->id();
    out["healthy"] = *healthy;
    co_return out;
}

Awaitable<ToolResult> endpoint(Call& call) {
    const std::int64_t port = call.integer("port", 0);
    if (port < 1 || port > kLastPort) co_return invalid("port", "expected 1 to 65535");
    auto sandbox = co_await call.workspace().sandbox(call);
    if (!sandbox) co_return sandbox.error();
    auto found = co_await sandbox->endpoint(static_cast<std::uint16_t>(port));
    if (!found) co_return found.error();
    co_return sdk::describe(*found);
}

/// Until the sandbox is in `state`, has failed, or the time is up: what it is then.
Awaitable<ToolResult> wait_for_state(Call& call, std::string id, std::string state) {
    const auto limit = milliseconds_of(call.number("wait_seconds", kDefaultStateWait));
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        auto info = co_await call.workspace().sandboxes().get(id);
        if (!info) co_return info.error();
        const bool final =
            info->state == state || info->state == "Failed" || info->state == "Terminated";
        if (final || std::chrono::steady_clock::now() >= end) co_return sdk::describe(*info);
        co_await net::sleep_for(kStatePolling);
    }
}

Awaitable<ToolResult> pause(Call& call) {
    const std::string id = call.text("sandbox_id");
    auto paused = co_await call.workspace().sandboxes().pause(id);
    if (!paused) co_return paused.error();
    co_return co_await wait_for_state(call, id, "Paused");
}

Awaitable<ToolResult> resume(Call& call) {
    const std::string id = call.text("sandbox_id");
    // Its address may be another one from now on.
    call.workspace().forget(id);
    auto resumed = co_await call.workspace().sandboxes().resume(id);
    if (!resumed) co_return resumed.error();
    auto info = co_await wait_for_state(call, id, "Running");
    if (!info || info->at("status").as_object().at("state").as_string() != "Running")
        co_return info;
    auto sandbox = co_await sdk::Sandbox::connect(call.workspace().server(), id);
    if (!sandbox) co_return sandbox.error();
    call.workspace().remember(std::move(*sandbox));
    co_return info;
}

Awaitable<void> delete_copies(Workspace& workspace, std::vector<sdk::SandboxInfo> copies) {
    for (const auto& copy : copies) {
        workspace.forget(copy.id);
        auto deleted = co_await workspace.sandboxes().kill(copy.id);
        if (!deleted) {
            log::warn("a copy was left behind",
                      {{"sandbox", copy.id}, {"error", deleted.error().message()}});
        }
    }
}

Awaitable<ToolResult> fork(Call& call) {
    sdk::ForkOptions options(static_cast<unsigned>(call.integer("count", 1)));
    if (const double seconds = call.number("timeout_seconds", 0); seconds > 0) {
        options.timeout = whole_seconds(seconds);
    }
    options.environment = call.map("env");
    for (auto& [name, value] : call.map("metadata"))
        options.metadata[name] = value;
    // Copies cannot be taken back half-way: they come to their end and are deleted again then.
    call.on_cancel([] {});
    auto copies = co_await call.workspace().sandboxes().fork(call.text("sandbox_id"), options);
    if (!copies) co_return copies.error();
    json::array infos;
    std::optional<sdk::Error> failed;
    for (const auto& copy : *copies) {
        if (call.cancelled()) break;
        auto sandbox = co_await sdk::Sandbox::connect(call.workspace().server(), copy.id);
        if (!sandbox) {
            failed = sandbox.error();
            break;
        }
        call.workspace().remember(std::move(*sandbox));
        infos.emplace_back(sandbox_document(copy));
    }
    if (call.cancelled()) failed = cancelled_error();
    if (failed) {
        // The client never learns their ids, so nobody else would delete them.
        co_await delete_copies(call.workspace(), std::move(*copies));
        co_return std::move(*failed);
    }
    json::object out;
    out["sandboxes"] = std::move(infos);
    co_return out;
}

json::object connected_input() {
    Object members = with_sandbox();
    return add_connect_if_missing(members).build();
}

json::object waiting_input() {
    Object members = with_sandbox();
    return members
        .optional("wait_seconds", schema::number(), kDefaultStateWait,
                  "How long to wait until it is done")
        .build();
}

json::object endpoint_input() {
    Object members = with_sandbox();
    members.required("port", schema::integer(), "Port that a program in the sandbox listens on");
    return add_connect_if_missing(members).build();
}

json::object fork_input() {
    Object members = with_sandbox();
    return members.optional("count", schema::integer(1, kMostCopies), 1, "How many copies")
        .nullable("timeout_seconds", schema::number(), "Their lifetime; missing: as the source's")
        .nullable("env", schema::map_of_text(), "Variables over the source's")
        .nullable("metadata", schema::map_of_text(), "Labels over the source's")
        .build();
}

}  // namespace

void add_state_tools(std::vector<Tool>& tools) {
    tools.push_back({"sandbox_renew", "Prolong a sandbox",
                     "Sets its end to timeout_seconds from now.", Effect::adds,
                     with_sandbox()
                         .required("timeout_seconds", schema::number(), "From now, at least 60")
                         .build(),
                     Object().required("expires_at", schema::time()).build(true), renew});
    tools.push_back({"sandbox_get_metrics", "Measure a sandbox",
                     "Processor and memory that it uses at this moment.", Effect::reads,
                     connected_input(), document_schema<sdk::Metrics>(sdk::fields::kMetricsMembers),
                     metrics});
    tools.push_back({"sandbox_healthcheck", "Check a sandbox",
                     "Whether the sandbox answers. When it does not, see diagnostics_events.",
                     Effect::reads, connected_input(),
                     Object()
                         .required("sandbox_id", schema::text())
                         .required("healthy", schema::boolean())
                         .build(true),
                     healthcheck});
    tools.push_back(
        {"sandbox_get_endpoint", "Address of a port",
         "How to reach a port of the sandbox from outside, such as that of a web server "
         "started with command_run and background=true. Put http:// before the "
         "endpoint, and send the headers given.",
         Effect::reads, endpoint_input(),
         document_schema<sdk::Endpoint>(sdk::fields::kEndpointMembers), endpoint});
    tools.push_back({"sandbox_pause", "Pause a sandbox",
                     "Freezes everything in it, memory included, until sandbox_resume.",
                     Effect::adds, waiting_input(), sandbox_info_schema(), pause});
    tools.push_back({"sandbox_resume", "Resume a sandbox", "Lets a paused sandbox go on.",
                     Effect::adds, waiting_input(), sandbox_info_schema(), resume});
    tools.push_back({"sandbox_fork", "Copy a sandbox",
                     "Running copies of the file system of a running or paused sandbox, to try "
                     "several ways from one point. Processes are not copied.",
                     Effect::adds, fork_input(),
                     Object().required("sandboxes", schema::list_of(sandbox_schema())).build(true),
                     fork});
}

}  // namespace opensandbox::mcp
