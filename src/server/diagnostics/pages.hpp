#pragma once

#include "lifecycle/sandbox_events.hpp"
#include "model/field_error.hpp"
#include "model/json_text.hpp"
#include "runtime/inspection.hpp"
#include "runtime/runtime.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The diagnostics routes: their parameters, and the text for operators (lifecycle 5). Pure.
namespace opensandbox::server::diagnostics {

/// What the query says; what it does not say has the route's default.
struct Parameters {
    std::optional<std::string> scope;  ///< trimmed, lower case
    std::int64_t tail = 100;           ///< 1..10000
    std::int64_t event_limit = 50;     ///< 1..500
    std::optional<std::chrono::seconds> since;
};

/// Which route reads the query: they differ in names and defaults.
enum class Page : std::uint8_t { logs, events, inspect, summary };

/// Every number out of its range or no number at all at once.
std::variant<Parameters, model::FieldErrors> parse_parameters(Page page, std::string_view query);

/// "90s", "15m", "2h", "7d"; ten minutes when it is anything else.
std::chrono::seconds parse_since(std::string_view text);

/// What `/events` shows, one line each: the backend's view, then what this server did.
std::vector<std::string> event_lines(const runtime::Inspection& inspection,
                                     const std::vector<lifecycle::SandboxEvent>& events);

/// The block of `/inspect`, secrets blanked. No newline at its end.
std::string inspect_text(const runtime::Inspection& inspection);

/// INSPECT, EVENTS and LOGS of a sandbox under a banner.
std::string summary_text(std::string_view sandbox_id, std::string_view inspect,
                         std::string_view events, std::string_view logs, std::int64_t tail);

/// Names whose values are never shown: containing SECRET, TOKEN, PASSWORD or KEY in any case, and
/// a few words of the same kind beyond the contract's.
bool is_secret_name(std::string_view name);

/// "***" for a secret name; otherwise the value, the password of a URL in it blanked.
std::string shown_value(std::string_view name, std::string_view value);

/// Some lines of a text, and whether there were more.
struct Cut {
    std::string text;
    bool truncated = false;
};
/// A newline at the end of the text does not begin another line.
Cut last_lines(std::string_view text, std::size_t count);
Cut first_lines(const std::vector<std::string>& lines, std::size_t count);

}  // namespace opensandbox::server::diagnostics
