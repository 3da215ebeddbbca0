#pragma once

#include "model/field_error.hpp"
#include "runtime/runtime.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

/// Parameters of the diagnostics routes (lifecycle 5). Pure.
namespace opensandbox::server::diagnostics {

/// What the query says; what it does not say has the route's default.
struct Parameters {
    Parameters() = default;
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

}  // namespace opensandbox::server::diagnostics
