#pragma once

#include <string>
#include <string_view>

/// How a value stands in a part of a request. What they return is as secret as the value.
namespace opensandbox::egress {

/// In a path or a query: all but unreserved characters as %XX.
std::string encode_for_url(std::string_view value);
/// In a form: the same with `+` for spaces.
std::string encode_for_form(std::string_view value);
/// Within the quotes of a JSON text.
std::string encode_for_json(std::string_view value);

}  // namespace opensandbox::egress
