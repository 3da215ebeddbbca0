#pragma once

#include "model/field_error.hpp"
#include "model/pool.hpp"

#include <string>
#include <string_view>
#include <variant>

/// Bodies of the /pools routes (lifecycle 2.9).
namespace opensandbox::model {

struct PoolRequest {
    std::string name;
    std::string template_json;  ///< an object; what is in it is judged where sandboxes are made
    PoolCapacity capacity;
};

/// POST.
std::variant<PoolRequest, FieldErrors> parse_pool_request(std::string_view body);
/// PUT: the capacity alone.
std::variant<PoolCapacity, FieldErrors> parse_capacity_request(std::string_view body);

}  // namespace opensandbox::model
