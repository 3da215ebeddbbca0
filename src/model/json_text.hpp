#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::model {

/// String pairs in the order the client gave them.
using StringMap = std::vector<std::pair<std::string, std::string>>;

/// Appends `text` as a JSON string. Bytes that are not UTF-8 become U+FFFD, so that the output is
/// valid JSON whatever a client put into a header or a path.
void append_json_string(std::string& out, std::string_view text);

/// `text` as a JSON string.
std::string json_string(std::string_view text);

/// Appends an object of strings.
void append_json_map(std::string& out, const StringMap& map);

/// Appends an array of strings.
void append_json_list(std::string& out, const std::vector<std::string>& list);

}  // namespace opensandbox::model
