#pragma once

#include "model/json_text.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Maps and lists inside a column.
namespace opensandbox::store {

std::string map_to_json(const model::StringMap& map);
std::string list_to_json(const std::vector<std::string>& list);
/// Empty when the text is not what its counterpart writes.
std::optional<model::StringMap> map_from_json(std::string_view text);
std::optional<std::vector<std::string>> list_from_json(std::string_view text);

}  // namespace opensandbox::store
