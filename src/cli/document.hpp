#pragma once

#include "cli/command_table.hpp"
#include "json/document.hpp"
#include "opensandbox/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::cli {

/// A column of a table: the member it shows and its title. `path` may step into members
/// ("status.state").
struct Column {
    std::string_view title;
    std::string_view path;
};

/// Indented by two, members in their order, as a document on its own with a line end.
std::string to_json_text(const json::value& document);

/// Block style, members sorted by name, every text quoted that YAML 1.1 would take for something
/// else; with a line end.
std::string to_yaml_text(const json::value& document);

/// Aligned columns under titles; "-" for what is absent.
std::string to_table_text(const json::array& rows, const std::vector<Column>& columns);

/// Two columns, member names and values; inner objects as "a=b, c=d".
std::string to_key_value_text(const json::object& from);

/// One value in one cell: no line ends, no control characters.
std::string to_cell_text(const json::value& from);

/// Shortest decimal form, always with a point or exponent ("2.0").
std::string to_number_text(double number);

}  // namespace opensandbox::cli
