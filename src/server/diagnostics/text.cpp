#include "server/diagnostics/pages.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace opensandbox::server::diagnostics {
namespace {

constexpr std::string_view kBlank = "***";
constexpr std::size_t kLabelWidth = 16;
constexpr std::size_t kEventWidth = 12;

std::string padded(std::string_view label, std::size_t width) {
    std::string text = std::string(label) + ":";
    text.resize(std::max(text.size() + 1, width), ' ');
    return text;
}

std::string_view yes_or_no(bool value) {
    return value ? "true" : "false";
}

std::string mebibytes(std::uint64_t bytes) {
    return std::to_string(bytes >> 20) + " MiB";
}

/// Keeps a text of the backend on its line.
std::string one_line(std::string_view text) {
    std::string line(text);
    std::ranges::replace_if(line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
    return line;
}

/// The block being written: every line ends with a newline.
class Block {
  public:
    void field(std::string_view label, std::string_view value) {
        text_ += padded(label, kLabelWidth) + one_line(value) + "\n";
    }
    void time(std::string_view label, const std::optional<Timestamp>& at) {
        if (at) field(label, to_rfc3339(*at));
    }
    /// A heading with an empty line before it.
    void heading(std::string_view name) { text_ += "\n" + std::string(name) + ":\n"; }
    void item(std::string_view text) { text_ += "  " + one_line(text) + "\n"; }
    [[nodiscard]] std::string text() && {
        if (text_.ends_with('\n')) text_.pop_back();
        return std::move(text_);
    }

  private:
    std::string text_;
};

void write_map(Block& block, std::string_view heading, model::StringMap map,
               std::string_view between) {
    if (map.empty()) return;
    std::ranges::sort(map);
    block.heading(heading);
    for (const auto& [name, value] : map)
        block.item(name + std::string(between) + shown_value(name, value));
}

std::string limit_value(model::LimitUnit unit, std::uint64_t amount) {
    switch (unit) {
        case model::LimitUnit::count: return std::to_string(amount);
        case model::LimitUnit::bytes: return mebibytes(amount);
        case model::LimitUnit::bytes_a_second: return std::to_string(amount) + " bytes/s";
    }
    return {};
}

void write_resources(Block& block, const model::ResourceLimits& limits) {
    std::vector<std::string> lines;
    if (limits.cpu_cores > 0) {
        std::array<char, 48> text{};
        std::snprintf(text.data(), text.size(), "CPU: %.2f cores", limits.cpu_cores);
        lines.emplace_back(text.data());
    }
    for (const model::LimitRow& row : model::kLimits) {
        const std::uint64_t amount = limits.*row.member;
        if (amount != 0)
            lines.push_back(std::string(row.title) + ": " + limit_value(row.unit, amount));
    }
    if (lines.empty()) return;
    block.heading("Resources");
    for (const std::string& line : lines)
        block.item(line);
}

void write_usage(Block& block, const runtime::Usage& usage) {
    if (usage == runtime::Usage()) return;
    block.heading("Usage");
    if (usage.cpu_seconds) {
        std::array<char, 48> text{};
        std::snprintf(text.data(), text.size(), "CPU: %.3f seconds", *usage.cpu_seconds);
        block.item(text.data());
    }
    if (usage.memory_bytes) {
        std::string text = "Memory: " + mebibytes(*usage.memory_bytes);
        if (usage.memory_peak_bytes) text += ", at most " + mebibytes(*usage.memory_peak_bytes);
        block.item(text);
    }
    if (usage.pids) block.item("PIDs: " + std::to_string(*usage.pids));
    if (usage.disk_bytes) block.item("Disk: " + mebibytes(*usage.disk_bytes));
    if (usage.received_bytes && usage.sent_bytes) {
        block.item("Network: " + std::to_string(*usage.received_bytes) + " bytes received, " +
                   std::to_string(*usage.sent_bytes) + " bytes sent");
    }
    if (usage.oom_kills > 0) block.item("OOM Kills: " + std::to_string(usage.oom_kills));
    if (usage.pids_refused > 0) block.item("PIDs Refused: " + std::to_string(usage.pids_refused));
}

/// "; 3 processes ended, limit 64 MiB, at most 64 MiB in use"
std::string oom_figures(const runtime::Inspection& seen) {
    const runtime::Usage& usage = seen.usage;
    if (usage.oom_kills == 0) return {};
    std::string text = usage.oom_kills == 1
                           ? "; 1 process ended"
                           : "; " + std::to_string(usage.oom_kills) + " processes ended";
    if (seen.limits.memory_bytes > 0) text += ", limit " + mebibytes(seen.limits.memory_bytes);
    if (usage.memory_peak_bytes) {
        text += ", at most " + mebibytes(*usage.memory_peak_bytes) + " in use";
    }
    return text;
}

void write_network(Block& block, const runtime::Inspection& seen) {
    if (seen.network_mode.empty() && seen.addresses.empty()) return;
    block.heading("Network");
    if (!seen.network_mode.empty()) block.item("Mode: " + seen.network_mode);
    for (const auto& [network, address] : seen.addresses)
        block.item(network + ": " + address);
}

}  // namespace

bool is_secret_name(std::string_view name) {
    std::string upper;
    for (char c : name)
        upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    constexpr std::array<std::string_view, 6> kWords{"SECRET", "TOKEN",  "PASSWORD",
                                                     "KEY",    "PASSWD", "CREDENTIAL"};
    bool named = std::ranges::any_of(
        kWords, [&](std::string_view word) { return upper.find(word) != std::string::npos; });
    return named || upper.ends_with("_AUTH") || upper.ends_with("-AUTH");
}

std::string shown_value(std::string_view name, std::string_view value) {
    if (is_secret_name(name)) return std::string(kBlank);
    std::string shown(value);
    for (std::size_t from = shown.find("://"); from != std::string::npos;
         from = shown.find("://", from)) {
        from += 3;
        std::size_t end = shown.find_first_of("/?# \t\r\n", from);
        std::string_view authority = std::string_view(shown).substr(from, end - from);
        std::size_t at = authority.rfind('@');
        if (at == std::string_view::npos) continue;
        std::size_t colon = authority.find(':');
        if (colon == std::string_view::npos || colon > at) continue;
        shown.replace(from + colon + 1, at - colon - 1, kBlank);
    }
    return shown;
}

std::vector<std::string> event_lines(const runtime::Inspection& seen,
                                     const std::vector<lifecycle::SandboxEvent>& events) {
    std::vector<std::string> lines;
    auto add = [&](std::string_view label, std::string_view text) {
        lines.push_back(padded(label, kEventWidth) + one_line(text));
    };
    std::string named = seen.name.empty() ? "" : " (" + seen.name + ")";
    add("Container", seen.object_id.substr(0, 12) + named);
    add("Status", seen.status);
    if (seen.created_at) add("Created", to_rfc3339(*seen.created_at));
    if (seen.started_at) add("Started", to_rfc3339(*seen.started_at));
    if (seen.finished_at) add("Finished", to_rfc3339(*seen.finished_at));
    if (seen.oom_killed)
        add("Event", "OOMKilled - the sandbox ran out of memory" + oom_figures(seen));
    if (seen.usage.pids_refused > 0) {
        const std::uint64_t pids = seen.limits.pids;
        std::string limit = pids > 0 ? " of " + std::to_string(pids) : "";
        add("Event", "PidsLimit - the limit" + limit + " processes was hit, forks refused: " +
                         std::to_string(seen.usage.pids_refused));
    }
    if (seen.exit_code && !seen.running && *seen.exit_code != 0) {
        add("Event", "Exited with code " + std::to_string(*seen.exit_code));
    }
    if (!seen.error.empty()) add("Event", "Error - " + seen.error);
    if (!seen.health.empty()) add("Health", seen.health);
    for (const std::string& entry : seen.health_log)
        lines.push_back("  " + one_line(entry));
    for (const auto& event : events) {
        std::string text = to_rfc3339(event.at) + " " + event.reason;
        if (!event.message.empty()) text += " - " + event.message;
        add("Event", text);
    }
    constexpr std::size_t kAlwaysThere = 3;
    if (lines.size() <= kAlwaysThere) lines.emplace_back("(no notable events)");
    return lines;
}

std::string inspect_text(const runtime::Inspection& seen) {
    Block block;
    block.field("Container ID", seen.object_id);
    if (!seen.name.empty()) block.field("Name", seen.name);
    if (!seen.image.empty()) block.field("Image", seen.image);
    block.field("Status", seen.status);
    block.field("Running", yes_or_no(seen.running));
    block.field("Paused", yes_or_no(seen.paused));
    block.field("OOMKilled", yes_or_no(seen.oom_killed));
    if (seen.exit_code) block.field("Exit Code", std::to_string(*seen.exit_code));
    block.time("Created At", seen.created_at);
    block.time("Started At", seen.started_at);
    block.time("Finished At", seen.finished_at);
    if (!seen.error.empty()) block.field("Error", seen.error);
    write_resources(block, seen.limits);
    write_usage(block, seen.usage);
    write_network(block, seen);
    if (!seen.ports.empty()) {
        block.heading("Ports");
        for (const auto& port : seen.ports)
            block.item(port.inside + " -> " + port.outside);
    }
    write_map(block, "Labels", seen.labels, "=");
    write_map(block, "Environment", seen.environment, "=");
    return std::move(block).text();
}

std::string summary_text(std::string_view sandbox_id, std::string_view inspect,
                         std::string_view events, std::string_view logs, std::int64_t tail) {
    const std::string banner(72, '=');
    const std::string rule(40, '-');
    std::string out = banner +
                      "\nSANDBOX DIAGNOSTICS SUMMARY\nSandbox ID: " + std::string(sandbox_id) +
                      "\n" + banner + "\n";
    auto section = [&](const std::string& title, std::string_view body) {
        out += "\n" + rule + "\n" + title + "\n" + rule + "\n" + std::string(body) + "\n";
    };
    section("INSPECT", inspect);
    section("EVENTS", events);
    section("LOGS (last " + std::to_string(tail) + " lines)", logs);
    return out;
}

Cut last_lines(std::string_view text, std::size_t count) {
    Cut cut;
    std::size_t from = text.size();
    if (text.ends_with('\n')) --from;
    for (std::size_t lines = 0; from > 0; --from) {
        if (text[from - 1] == '\n' && ++lines == count) {
            cut.truncated = true;
            break;
        }
    }
    cut.text = std::string(text.substr(from));
    return cut;
}

Cut first_lines(const std::vector<std::string>& lines, std::size_t count) {
    Cut cut;
    cut.truncated = lines.size() > count;
    for (std::size_t i = 0; i < lines.size() && i < count; ++i)
        cut.text += (i > 0 ? "\n" : "") + lines[i];
    return cut;
}

}  // namespace opensandbox::server::diagnostics
