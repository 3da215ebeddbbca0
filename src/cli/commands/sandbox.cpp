#include "base/clock.hpp"
#include "cli/invocation.hpp"
#include "net/task.hpp"
#include "sdk/document/describe.hpp"

#include <array>
#include <cstdio>

namespace opensandbox::cli {

namespace {

constexpr std::string_view kId = "SANDBOX_ID";
const Positional kOneId{kId, "The sandbox's id."};
const std::vector<std::string_view>& known_states() {
    static const std::vector<std::string_view> states{"Pending",    "Running",  "Pausing",
                                                      "Paused",     "Resuming", "Stopping",
                                                      "Terminated", "Failed",   "Unknown"};
    return states;
}

Awaitable<Outcome> list_sandboxes(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::ListFilter filter;
    for (const auto& state : arguments.all("--state")) {
        auto known = arguments.choice("--state", state, known_states());
        if (known) filter.states.push_back(std::move(*known));
    }
    for (auto& [name, value] : arguments.pairs("--metadata"))
        filter.metadata[name] = value;
    if (auto page = arguments.integer("--page", 1, INT32_MAX)) {
        filter.page = static_cast<unsigned>(*page);
    }
    if (auto size = arguments.integer("--page-size", 1, 200)) {
        filter.page_size = static_cast<unsigned>(*size);
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    auto page = co_await sandboxes.list(std::move(filter));
    if (!page) co_return page.error();
    const json::object document = describe(*page);
    const Outcome outcome = invocation.print_list(document, document.at("items").as_array(),
                                                  {{"ID", "id"},
                                                   {"STATUS", "status.state"},
                                                   {"IMAGE", "image.image"},
                                                   {"CREATED_AT", "created_at"},
                                                   {"EXPIRES_AT", "expires_at"}});
    if (invocation.format() == Format::table && page->pagination.has_next_page) {
        invocation.terminal().print_note("Page " + std::to_string(page->pagination.page) + " of " +
                                         std::to_string(page->pagination.total_pages) +
                                         "; --page shows the others.");
    }
    co_return outcome;
}

Awaitable<Outcome> get_sandbox(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    auto info = co_await sandboxes.get(invocation.arguments().one(kId));
    if (!info) co_return info.error();
    co_return invocation.print_object(invocation.format() == Format::table ? rows_of(*info)
                                                                           : describe(*info));
}

/// Every id is tried; the first failure is what is reported.
Awaitable<Outcome> kill(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    json::array rows;
    std::optional<sdk::Error> failed;
    for (const auto& id : invocation.arguments().rest(kId)) {
        auto killed = co_await sandboxes.kill(id);
        json::object row;
        row["sandbox_id"] = id;
        row["status"] = killed ? "terminated" : "error";
        if (!killed) row["message"] = killed.error().message();
        rows.emplace_back(std::move(row));
        if (!killed && !failed) failed = killed.error();
    }
    const std::vector<Column> columns{{"SANDBOX_ID", "sandbox_id"}, {"STATUS", "status"}};
    if (!failed || rows.size() > 1) invocation.print_list(rows, rows, columns);
    if (failed) co_return *failed;
    co_return kSuccess;
}

Awaitable<Outcome> renew(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto timeout = arguments.duration("--timeout");
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    auto at = co_await sandboxes.renew(arguments.one(kId),
                                       std::chrono::ceil<std::chrono::seconds>(*timeout));
    if (!at) co_return at.error();
    json::object document;
    document["sandbox_id"] = arguments.one(kId);
    document["expires_at"] = to_rfc3339(*at);
    co_return invocation.print_object(document);
}

Awaitable<Outcome> pause(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    const std::string id = invocation.arguments().one(kId);
    auto paused = co_await sandboxes.pause(id);
    if (!paused) co_return paused.error();
    co_return invocation.print_done("Sandbox paused: " + id);
}

Awaitable<Outcome> resume(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    sdk::ConnectOptions options;
    options.skip_health_check = arguments.has("--skip-health-check");
    if (auto limit = arguments.duration("--resume-timeout")) options.ready_timeout = *limit;
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    const std::string id = arguments.one(kId);
    auto resumed = co_await sandboxes.resume(id);
    if (!resumed) co_return resumed.error();
    auto sandbox = co_await sdk::Sandbox::connect(*connection, id, std::move(options));
    if (!sandbox) co_return sandbox.error();
    co_return invocation.print_done("Sandbox resumed: " + id);
}

Awaitable<Outcome> endpoint(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto port = arguments.integer("--port", 1, 65535);
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    auto endpoint =
        co_await sandboxes.endpoint(arguments.one(kId), static_cast<std::uint16_t>(*port));
    if (!endpoint) co_return endpoint.error();
    co_return invocation.print_object(describe(*endpoint));
}

Awaitable<Outcome> health(Invocation& invocation) {
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto healthy = co_await sandbox->is_healthy();
    if (!healthy) co_return healthy.error();
    if (invocation.format() == Format::table) {
        invocation.print_raw("Sandbox " + sandbox->id() +
                             (*healthy ? " is healthy\n" : " is not healthy\n"));
    } else {
        json::object document;
        document["sandbox_id"] = sandbox->id();
        document["healthy"] = *healthy;
        invocation.print_object(document);
    }
    co_return *healthy ? kSuccess : kFailed;
}

/// One sample for people, in the contract's form.
std::string sample_line(const sdk::Metrics& sample) {
    char text[160];
    std::snprintf(text, sizeof text, "cpu=%.2f%% cores=%g mem=%.2f/%.2fMiB",
                  sample.cpu_used_percentage, sample.cpu_count, sample.memory_used_in_mib,
                  sample.memory_total_in_mib);
    const auto at = sdk::TimePoint(std::chrono::milliseconds(sample.timestamp));
    return "[" + to_rfc3339(at) + "] " + text;
}

Awaitable<Outcome> watch_metrics(Invocation& invocation, sdk::Sandbox sandbox) {
    auto stream = co_await sandbox.watch_metrics();
    if (!stream) co_return stream.error();
    const bool asked = invocation.arguments().has("--output");
    for (;;) {
        auto sample = co_await stream->next();
        if (!sample) co_return sample.error();
        if (!sample->has_value()) co_return kSuccess;
        const json::object document = describe(**sample);
        bool written = true;
        if (invocation.format() == Format::yaml) {
            written = invocation.terminal().print("---\n" + to_yaml_text(document));
        } else if (!asked || invocation.format() != Format::json) {
            written = invocation.terminal().print(sample_line(**sample) + "\n");
        } else {  // one document a line, so that a reader need not count braces
            written = invocation.terminal().print(json::serialize(document) + "\n");
        }
        if (!written) co_return kSuccess;
    }
}

Awaitable<Outcome> metrics(Invocation& invocation) {
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    if (invocation.arguments().has("--watch")) {
        co_return co_await watch_metrics(invocation, *sandbox);
    }
    auto metrics = co_await sandbox->metrics();
    if (!metrics) co_return metrics.error();
    co_return invocation.print_object(describe(*metrics));
}

}  // namespace

void add_sandbox_create_command(CommandTable& table);
void add_sandbox_fork_command(CommandTable& table);

void add_sandbox_commands(CommandTable& table) {
    add_sandbox_create_command(table);
    add_sandbox_fork_command(table);
    Command command =
        make_document_command("sandbox", "list", "List sandboxes.", {}, list_sandboxes);
    command.options = {{"--state", 's', "STATE", "Only sandboxes in this state.", true},
                       {"--metadata", 'm', "KEY=VALUE", "Only sandboxes with this label.", true},
                       {"--page", 0, "NUMBER", "Page to show, from 1."},
                       {"--page-size", 0, "NUMBER", "Sandboxes a page, 1 to 200 (default 20)."}};
    command.examples = {{"sandbox list", "all of them"},
                        {"sandbox list -s running -m team=blue -o json", "filtered, for scripts"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("sandbox", "get", "Show one sandbox.", {kOneId}, get_sandbox);
    command.examples = {{"sandbox get SANDBOX_ID -o yaml", "all that is known about it"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("sandbox", "kill", "Delete sandboxes.",
                                    {{kId, "Ids, one or more.", Positional::Count::many}}, kill);
    command.details =
        "All are tried, also after one that could not be deleted; the exit code then is 1.";
    command.examples = {{"sandbox kill SANDBOX_ID", "delete one"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("sandbox", "renew",
                                    "Set the time at which a sandbox is deleted.", {kOneId}, renew);
    command.options = {{"--timeout", 't', "DURATION", "From now on.", false, true}};
    command.examples = {{"sandbox renew SANDBOX_ID -t 1h", "let it live for another hour"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("sandbox", "pause", "Pause a sandbox.", {kOneId}, pause);
    command.details = "Its processes stand still and keep their memory until it is resumed.";
    command.examples = {{"sandbox pause SANDBOX_ID", "until 'sandbox resume'"}};
    table.commands.push_back(std::move(command));

    command =
        make_document_command("sandbox", "resume", "Resume a paused sandbox.", {kOneId}, resume);
    command.options = {
        {"--skip-health-check", 0, "", "Do not wait until it answers."},
        {"--resume-timeout", 0, "DURATION", "Longest wait for an answer (default 30s)."}};
    command.examples = {{"sandbox resume SANDBOX_ID", "and wait until it answers"},
                        {"sandbox resume SANDBOX_ID --resume-timeout 2m", "with more patience"}};
    table.commands.push_back(std::move(command));

    command =
        make_document_command("sandbox", "endpoint",
                              "Show where a port of a sandbox can be reached.", {kOneId}, endpoint);
    command.options = {{"--port", 'p', "PORT", "Port inside the sandbox.", false, true}};
    command.examples = {{"sandbox endpoint SANDBOX_ID -p 8000", "address of a web server in it"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("sandbox", "health",
                                    "Ask whether a sandbox answers; exit code 0 when it does.",
                                    {kOneId}, health);
    command.examples = {{"sandbox health SANDBOX_ID", "in a script: if … then …"}};
    table.commands.push_back(std::move(command));

    command =
        make_document_command("sandbox", "metrics", "Show what a sandbox uses.", {kOneId}, metrics);
    command.formats.push_back(Format::raw);
    command.options = {{"--watch", 0, "", "Go on with a sample a second."}};
    command.examples = {{"sandbox metrics SANDBOX_ID", "processors and memory, now"},
                        {"sandbox metrics SANDBOX_ID --watch", "a line a second"},
                        {"sandbox metrics SANDBOX_ID --watch -o json", "a JSON document a line"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
