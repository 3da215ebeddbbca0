#pragma once

#include "base/error.hpp"
#include "lifecycle/sandbox_index.hpp"
#include "model/field_error.hpp"

#include <string_view>
#include <variant>

namespace opensandbox::server {

/// A list query was wrong: schema errors (422) or a bad metadata filter (400).
using ListQueryError = std::variant<model::FieldErrors, Error>;

/// Reads `state` (repeated), `metadata`, `page` and `pageSize` (lifecycle 1.4).
std::variant<lifecycle::ListQuery, ListQueryError> parse_list_query(std::string_view raw_query);

/// The decoded value of `metadata`, itself a query string: `k=v&k2=v2`, form-decoded once more,
/// blank values kept. `invalid_argument` with INVALID_METADATA_FORMAT for a part without `=`.
Result<model::StringMap> parse_metadata_filter(std::string_view text);

}  // namespace opensandbox::server
