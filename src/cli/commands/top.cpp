#include "base/clock.hpp"
#include "cli/invocation.hpp"
#include "cli/sandbox_listing.hpp"
#include "net/task.hpp"
#include "sdk/document/describe.hpp"

#include <cstdio>

namespace opensandbox::cli {

namespace {

constexpr std::chrono::milliseconds kInterval{2000};
/// From the left upper corner, without what was there.
constexpr std::string_view kRedraw = "\x1b[H\x1b[J";

std::string fixed(double number) {
    char text[64];
    std::snprintf(text, sizeof text, "%.1f", number);
    return text;
}

/// One sandbox's row, also when it does not answer.
json::object row_of(const std::string& id, const sdk::Result<sdk::Metrics>& metrics) {
    json::object row;
    row["sandbox_id"] = id;
    if (!metrics) {
        row["error"] = metrics.error().message();
        return row;
    }
    for (auto& member : describe(*metrics))
        row[member.key()] = member.value();
    return row;
}

json::object cells_of(const json::object& row, const sdk::Result<sdk::Metrics>& metrics) {
    json::object cells;
    cells["sandbox_id"] = row.at("sandbox_id");
    if (!metrics) {
        cells["note"] = row.at("error");
        return cells;
    }
    cells["cpu"] = fixed(metrics->cpu_used_percentage) + " %";
    cells["cpus"] = to_number_text(metrics->cpu_count);
    const double total = metrics->memory_total_in_mib;
    cells["memory"] = fixed(metrics->memory_used_in_mib) + " of " + fixed(total) + " MiB";
    cells["share"] = fixed(total > 0 ? 100 * metrics->memory_used_in_mib / total : 0) + " %";
    cells["note"] = "";
    return cells;
}

class Top {
  public:
    Top(Invocation& invocation, sdk::Connection connection)
        : invocation_(invocation), connection_(std::move(connection)) {}

    /// The ids asked for, or those of all that run.
    Awaitable<sdk::Result<std::vector<std::string>>> ids() {
        auto given = invocation_.arguments().rest("SANDBOX_ID");
        if (!given.empty()) co_return given;
        sdk::ListFilter filter;
        filter.states = {"Running"};
        auto running = co_await list_all(connection_, std::move(filter));
        if (!running) co_return running.error();
        for (const auto& info : *running)
            given.push_back(info.id);
        co_return given;
    }

    Awaitable<sdk::Result<sdk::Metrics>> sample(std::string id) {
        auto known = agents_.find(id);
        if (known == agents_.end()) {
            sdk::ConnectOptions options;
            options.skip_health_check = true;
            auto sandbox = co_await sdk::Sandbox::connect(connection_, id, std::move(options));
            if (!sandbox) co_return sandbox.error();
            known = agents_.emplace(id, std::move(*sandbox)).first;
        }
        auto metrics = co_await known->second.metrics();
        if (!metrics) agents_.erase(id);  // it may be found elsewhere next time
        co_return metrics;
    }

    /// False when nobody reads any more.
    Awaitable<sdk::Result<bool>> round() {
        auto which = co_await ids();
        if (!which) co_return which.error();
        json::array rows;
        json::array cells;
        for (const auto& id : *which) {
            auto metrics = co_await sample(id);
            rows.emplace_back(row_of(id, metrics));
            cells.emplace_back(cells_of(rows.back().as_object(), metrics));
            if (!metrics && which->size() == 1 &&
                !invocation_.arguments().rest("SANDBOX_ID").empty())
                co_return metrics.error();
        }
        co_return show(rows, cells);
    }

  private:
    bool show(const json::array& rows, const json::array& cells) {
        Terminal& terminal = invocation_.terminal();
        std::string text;
        if (invocation_.format() == Format::json) {
            for (const auto& row : rows)
                text += json::serialize(row) + "\n";
            return terminal.print(text);
        }
        const std::vector<Column> columns{
            {"SANDBOX_ID", "sandbox_id"}, {"CPU", "cpu"},     {"OF", "cpus"},
            {"MEMORY", "memory"},         {"SHARE", "share"}, {"NOTE", "note"}};
        if (terminal.output_is_terminal()) {
            text = to_table_text(cells, columns);
            const auto end = text.find('\n');
            return terminal.print(std::string(kRedraw) + to_rfc3339(now()) + "\n" +
                                  terminal.strong(text.substr(0, end)) + text.substr(end));
        }
        for (const auto& row : rows)
            text += to_cell_text(row) + "\n";
        return terminal.print(text);
    }
    Invocation& invocation_;
    sdk::Connection connection_;
    std::map<std::string, sdk::Sandbox> agents_;
};

Awaitable<Outcome> top(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto interval = arguments.duration("--interval").value_or(kInterval);
    const auto rounds = arguments.integer("--count", 1, INT32_MAX);
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    Top view(invocation, *connection);
    for (std::int64_t done = 1;; ++done) {
        auto shown = co_await view.round();
        if (!shown) co_return shown.error();
        if (!*shown || (rounds && done == *rounds)) co_return kSuccess;
        co_await net::sleep_for(interval);
    }
}

}  // namespace

void add_top_command(CommandTable& table) {
    Command command;
    command.group = "sandbox";
    command.name = "top";
    command.summary = "Show what sandboxes use, again and again.";
    command.details =
        "One table that is drawn over; a line for each sample when standard output is no "
        "terminal,\n"
        "with -o json as a document. Goes on until Ctrl-C.";
    command.positionals = {
        {"SANDBOX_ID", "Ids (default: all that run).", Positional::Count::any_number}};
    command.options = {{"--interval", 0, "DURATION", "Time between samples (default 2s)."},
                       {"--count", 'n', "NUMBER", "Samples to take (default: without end)."}};
    command.formats = {Format::table, Format::json};
    command.examples = {{"sandbox top", "all that run"},
                        {"sandbox top SANDBOX_ID -n 1 -o json", "one sample, for scripts"}};
    command.run = top;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
