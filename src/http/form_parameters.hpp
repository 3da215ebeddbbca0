#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::http {

/// A parameter of a field value such as `form-data; name="a"; filename="b"`. Quoted or bare; the
/// extended form (`filename*=UTF-8''%C3%A4`, RFC 5987) wins over the plain one. In quotes a
/// backslash escapes only what needs it, so that a path with backslashes comes through whole.
std::optional<std::string> form_parameter(std::string_view value, std::string_view name);

}  // namespace opensandbox::http
