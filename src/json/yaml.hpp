#pragma once

#include "json/document.hpp"

#include <string_view>

namespace opensandbox::json {

/// Reads one YAML (or JSON) document. Plain words are null, booleans and decimal numbers as
/// YAML 1.2's core schema has them, so that `on` and `0:10` stay texts. Anchors, aliases, tags,
/// keys that are no texts and more than 64 levels are refused. `invalid_argument` names the line;
/// it never quotes the text, which may hold secrets.
Result<value> parse_yaml(std::string_view text);

}  // namespace opensandbox::json
