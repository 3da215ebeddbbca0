#include "cli/invocation.hpp"
#include "cli/log_lines.hpp"
#include "net/task.hpp"
#include "sdk/transport.hpp"

namespace opensandbox::cli {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostLines = 10'000;
constexpr std::int64_t kLines = 100;
constexpr std::chrono::milliseconds kPause = 500ms;
/// Overlap of one question with the last, for clocks and lines that are written late.
constexpr std::chrono::seconds kOverlap = 10s;

struct LogQuery {
    std::int64_t tail = kLines;
    std::string since;
};

Awaitable<sdk::Result<std::string>> fetch(sdk::Connection connection, std::string id,
                                          LogQuery query) {
    std::string target = "/sandboxes/" + http::percent_encode(id) +
                         "/diagnostics/logs?tail=" + std::to_string(query.tail);
    if (!query.since.empty()) target += "&since=" + http::percent_encode(query.since);
    sdk::Call call("GET", std::move(target));
    const auto& transport = connection.transport();
    auto reply = co_await transport->exchange(transport->lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return std::move(reply->body);
}

std::string shown(const std::vector<std::string_view>& lines, bool timestamps) {
    std::string text;
    for (auto line : lines)
        text += std::string(timestamps ? line : without_time(line)) + "\n";
    return text;
}

Awaitable<Outcome> print_logs(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    LogQuery query;
    query.tail = arguments.integer("--tail", 1, kMostLines).value_or(kLines);
    if (auto since = arguments.duration("--since")) {
        query.since = std::to_string(std::chrono::ceil<std::chrono::seconds>(*since).count()) + "s";
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    const std::string id = arguments.one("SANDBOX_ID");
    const bool timestamps = arguments.has("--timestamps");
    LogFollower follower;
    for (;;) {
        const auto asked = Clock::now();
        auto text = co_await fetch(*connection, id, query);
        if (!text) {
            // A sandbox that was deleted while we looked on is the end, not a failure.
            const bool gone = text.error().code() == sdk::ErrorCode::not_found;
            if (gone && follower.started()) co_return kSuccess;
            co_return text.error();
        }
        if (!invocation.terminal().print(shown(follower.fresh(*text), timestamps))) {
            co_return kSuccess;
        }
        if (!arguments.has("--follow")) co_return kSuccess;
        co_await net::sleep_for(kPause);
        const auto passed = std::chrono::ceil<std::chrono::seconds>(Clock::now() - asked);
        query.since = std::to_string((passed + kOverlap).count()) + "s";
        query.tail = kMostLines;
    }
}

}  // namespace

void add_logs_command(CommandTable& table) {
    Command command;
    command.group = "sandbox";
    command.name = "logs";
    command.summary = "Print what a sandbox's entrypoint wrote.";
    command.details =
        "For commands that were started in the background there is 'command logs'. With --follow\n"
        "it goes on until the sandbox is deleted or Ctrl-C.";
    command.positionals = {kSandboxId};
    command.options = {{"--follow", 'f', "", "Go on with what comes."},
                       {"--tail", 'n', "LINES", "Lines from the end, 1 to 10000 (default 100)."},
                       {"--since", 0, "DURATION", "Nothing older than this."},
                       {"--timestamps", 0, "", "Begin every line with its time."}};
    command.examples = {
        {"sandbox logs SANDBOX_ID -f", "follow it"},
        {"sandbox logs SANDBOX_ID --tail 20 --timestamps", "the last twenty lines"}};
    command.run = print_logs;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
