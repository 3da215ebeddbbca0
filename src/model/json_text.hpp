#pragma once

#include "base/clock.hpp"
#include "base/json_string.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::model {

/// String pairs in the order the client gave them.
using StringMap = std::vector<std::pair<std::string, std::string>>;

/// `text` as a JSON string.
std::string json_string(std::string_view text);

/// Appends an object of strings.
void append_json_map(std::string& out, const StringMap& map);

/// Appends `"status":{…}`; reason and message only when there is one.
void append_json_status(std::string& out, std::string_view state, std::string_view reason,
                        std::string_view message, Timestamp last_transition_at);

/// Appends an array of strings.
void append_json_list(std::string& out, const std::vector<std::string>& list);

}  // namespace opensandbox::model
