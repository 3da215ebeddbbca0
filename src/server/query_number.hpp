#pragma once

#include "http/message.hpp"
#include "model/field_error.hpp"

#include <cstdint>
#include <string_view>

namespace opensandbox::server {

/// Reads one integer parameter of 1 to `maximum` when it is there; errors in the contract's 422
/// shape (lifecycle 1.3).
void read_number(const http::Query& query, std::string_view name, std::int64_t maximum,
                 std::int64_t& into, model::FieldErrors& errors);

}  // namespace opensandbox::server
