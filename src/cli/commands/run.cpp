#include "base/scope_exit.hpp"
#include "cli/invocation.hpp"
#include "cli/remote_run.hpp"
#include "net/task.hpp"

#include <algorithm>

namespace opensandbox::cli {

namespace {

using namespace std::chrono_literals;

/// Lifetime of the sandbox of a `run` without --timeout. It is renewed while we are there, so a
/// sandbox that we could not delete is gone ten minutes later.
constexpr std::chrono::seconds kLease = 10min;
constexpr std::chrono::seconds kRenewEvery = 3min;
/// What a sandbox lives longer than the command that may run in it.
constexpr std::chrono::seconds kGrace = 60s;

struct RunRequest {
    sdk::CreateOptions create;
    sdk::CommandRequest command;
    bool keep = false;
    bool renew = true;
};

RunRequest read_request(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    RunRequest request;
    request.create.image =
        arguments.get("--image").value_or(invocation.file().default_image.value_or("host"));
    request.create.environment = arguments.pairs("--env");
    for (auto& [name, value] : arguments.pairs("--metadata"))
        request.create.metadata[name] = value;
    if (auto cpu = arguments.get("--cpu")) request.create.resource_limits["cpu"] = *cpu;
    if (auto memory = arguments.get("--memory")) request.create.resource_limits["memory"] = *memory;
    request.create.timeout = kLease;
    if (auto limit = arguments.duration("--timeout")) {
        request.command.timeout = *limit;
        request.create.timeout = std::chrono::ceil<std::chrono::seconds>(*limit) + kGrace;
        request.renew = false;
    }
    if (auto directory = arguments.get("--workdir")) request.command.working_directory = *directory;
    request.command.environment = request.create.environment;
    request.command.argv = arguments.rest("COMMAND");
    request.keep = arguments.has("--keep");
    return request;
}

/// Renews until the flag falls.
Awaitable<void> keep_alive(sdk::Sandbox sandbox, std::shared_ptr<bool> wanted) {
    for (;;) {
        co_await net::sleep_for(kRenewEvery);
        if (!*wanted) co_return;
        auto ignored = co_await sandbox.renew(kLease);  // the next round tries again
        static_cast<void>(ignored);
    }
}

/// Deletes the sandbox unless it is to be kept; false when that failed.
Awaitable<bool> put_away(Invocation& invocation, sdk::Sandbox sandbox, bool keep) {
    if (keep) {
        invocation.terminal().print_note("Kept sandbox " + sandbox.id());
        co_return true;
    }
    auto killed = co_await sandbox.kill();
    if (killed || killed.error().code() == sdk::ErrorCode::not_found) co_return true;
    invocation.terminal().print_error("sandbox " + sandbox.id() +
                                      " could not be deleted: " + killed.error().message());
    co_return false;
}

Awaitable<Outcome> run_in_new_sandbox(Invocation& invocation) {
    RunRequest request = read_request(invocation);
    if (invocation.arguments().problem()) co_return *invocation.arguments().problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();

    Interrupts& interrupts = invocation.interrupts();
    // A create that was sent must be seen through, or nobody would know what to delete.
    interrupts.handle([] {});
    ScopeExit released([&] { interrupts.handle({}); });
    std::optional<net::Deadline> notice;
    notice.emplace(invocation.executor(), 200ms, [&] {
        invocation.terminal().show_progress("Creating a sandbox from " + request.create.image +
                                            "…");
    });
    const bool keep = request.keep;
    auto sandbox = co_await sdk::Sandbox::create(*connection, std::move(request.create));
    notice.reset();
    invocation.terminal().clear_progress();
    if (!sandbox) co_return sandbox.error();
    if (interrupts.received() != 0) {
        co_await put_away(invocation, *sandbox, false);
        co_return 128 + interrupts.received();
    }

    auto renewing = std::make_shared<bool>(request.renew);
    if (request.renew) {
        net::spawn(invocation.executor(), keep_alive(*sandbox, renewing), "renew");
    }
    auto done = co_await run_remote(invocation, sandbox->commands(), std::move(request.command),
                                    /*stop_remote=*/keep);
    *renewing = false;
    interrupts.handle([] {});  // deleting takes a moment; a second signal still ends us
    const bool clean = co_await put_away(invocation, *sandbox, keep);
    if (!done) co_return done.error();
    const int exit_code = finish_remote(invocation, *done);
    co_return exit_code == kSuccess && !clean ? kFailed : exit_code;
}

}  // namespace

void add_run_command(CommandTable& table) {
    Command command;
    command.name = "run";
    command.summary = "Run one command in a fresh sandbox that is deleted afterwards.";
    command.details =
        "Output comes as it is made, standard output and standard error apart. The exit code is\n"
        "the command's own; 128 + n when signal n ended it. The words after -- are the command's\n"
        "arguments as they stand: for pipes and variables say sh -c '…'.";
    command.positionals = {{"COMMAND", "Program and arguments.", Positional::Count::payload}};
    command.options = {
        {"--image", 'i', "IMAGE", "Image to start from (default: defaults.image, else host)."},
        {"--env", 'e', "KEY=VALUE", "Environment variable.", true},
        {"--metadata", 'm', "KEY=VALUE", "Label of the sandbox.", true},
        {"--cpu", 0, "CPUS", "Processors: 1, 0.5 or 500m (default 1)."},
        {"--memory", 0, "SIZE", "Memory: 512Mi, 2Gi (default 2Gi)."},
        {"--timeout", 't', "DURATION", "Kill the command after this time (default: never)."},
        {"--workdir", 'w', "PATH", "Directory to start in."},
        {"--keep", 0, "", "Do not delete the sandbox; it stays until its time is up."},
    };
    command.examples = {
        {"run -- python3 -c 'print(6 * 7)'", "run a line of Python"},
        {"run -e GREETING=hi -- sh -c 'echo $GREETING | tr a-z A-Z'", "use a shell"},
        {"run -i python:3.12 --memory 512Mi -t 30s -- python3 --version",
         "limits and another image"},
    };
    command.run = run_in_new_sandbox;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
