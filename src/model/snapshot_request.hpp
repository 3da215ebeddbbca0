#pragma once

#include "model/field_error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace opensandbox::model {

/// POST /sandboxes/{id}/snapshots: the name, if there is one. The body may be empty or null
/// (lifecycle 1.4).
std::variant<std::optional<std::string>, FieldErrors> parse_snapshot_request(std::string_view body);

}  // namespace opensandbox::model
