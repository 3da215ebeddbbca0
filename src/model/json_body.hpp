#pragma once

#include "model/field_error.hpp"

#include <boost/json/fwd.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// Request bodies: JSON or the contract's 422 (lifecycle 1.3).
namespace opensandbox::model {

/// Parses into `out`. An empty body gives `missing`, a malformed one `json_invalid`.
FieldErrors parse_body(std::string_view body, boost::json::value& out);

/// A flat object whose members are text or null; later duplicates win.
std::variant<std::vector<std::pair<std::string, std::optional<std::string>>>, FieldErrors>
parse_nullable_map(std::string_view body);

}  // namespace opensandbox::model
