#include "base/clock.hpp"
#include "cli/invocation.hpp"
#include "cli/sandbox_listing.hpp"
#include "net/task.hpp"

#include <algorithm>

namespace opensandbox::cli {

namespace {

constexpr std::chrono::milliseconds kInterval{1000};
constexpr std::string_view kDeleted = "Deleted";

struct Change {
    std::string id;
    std::string before;  ///< empty: it was not there
    std::string after;
    std::string reason;
};

using States = std::map<std::string, std::string>;

/// What is different now, and the states from now on.
std::vector<Change> changes_of(States& known, const std::vector<sdk::SandboxInfo>& current) {
    std::vector<Change> changes;
    States next;
    for (const auto& info : current) {
        next[info.id] = info.state;
        auto before = known.find(info.id);
        if (before != known.end() && before->second == info.state) continue;
        changes.push_back({info.id, before == known.end() ? "" : before->second, info.state,
                           info.reason.value_or("")});
    }
    for (const auto& [id, state] : known) {
        if (!next.contains(id)) changes.push_back({id, state, std::string(kDeleted), ""});
    }
    known = std::move(next);
    return changes;
}

bool print_change(Invocation& invocation, const Change& change) {
    const std::string time = to_rfc3339(now());
    json::object row;
    row["time"] = time;
    row["sandbox_id"] = change.id;
    row["before"] = change.before.empty() ? json::value() : json::value(change.before);
    row["state"] = change.after;
    row["reason"] = change.reason.empty() ? json::value() : json::value(change.reason);
    if (invocation.format() == Format::json) {
        return invocation.terminal().print(json::serialize(row) + "\n");
    }
    std::string text = time + "  " + change.id + "  ";
    if (!change.before.empty()) text += change.before + " → ";
    text += change.after;
    if (!change.reason.empty()) text += " (" + to_cell_text(row["reason"]) + ")";
    return invocation.terminal().print(text + "\n");
}

/// Those asked for; all when none was.
void keep_wanted(std::vector<sdk::SandboxInfo>& infos, const std::vector<std::string>& wanted) {
    if (wanted.empty()) return;
    std::erase_if(infos, [&](const sdk::SandboxInfo& info) {
        return std::ranges::find(wanted, info.id) == wanted.end();
    });
}

Awaitable<Outcome> watch(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto interval = arguments.duration("--interval").value_or(kInterval);
    const auto wanted = arguments.rest("SANDBOX_ID");
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Sandboxes sandboxes(*connection);
    for (const auto& id : wanted) {
        auto there = co_await sandboxes.get(id);
        if (!there) co_return there.error();
    }
    States known;
    for (;;) {
        sdk::ListFilter all;
        auto infos = co_await list_all(*connection, std::move(all));
        if (!infos) co_return infos.error();
        keep_wanted(*infos, wanted);
        for (const Change& change : changes_of(known, *infos)) {
            if (!print_change(invocation, change)) co_return kSuccess;
        }
        if (!wanted.empty() && known.empty()) co_return kSuccess;
        co_await net::sleep_for(interval);
    }
}

}  // namespace

void add_watch_command(CommandTable& table) {
    Command command;
    command.group = "sandbox";
    command.name = "watch";
    command.summary = "Print changes of state as they happen.";
    command.details =
        "First the state of every sandbox, then a line for each that changed. The server is asked\n"
        "again and again, so a state that lasts shorter than the interval may be missed. Goes on\n"
        "until Ctrl-C, or until all sandboxes that were named are deleted.";
    command.positionals = {{"SANDBOX_ID", "Ids (default: all).", Positional::Count::any_number}};
    command.options = {{"--interval", 0, "DURATION", "Time between questions (default 1s)."}};
    command.formats = {Format::table, Format::json};
    command.examples = {{"sandbox watch", "all of them"},
                        {"sandbox watch SANDBOX_ID -o json", "one, for scripts, until it is gone"}};
    command.run = watch;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
