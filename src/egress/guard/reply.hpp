#pragma once

#include "base/error.hpp"
#include "http/exchange.hpp"

#include <string>
#include <string_view>

/// The forms of the API's replies (network contract 1.1).
namespace opensandbox::egress {

/// One line of text; browsers are not to guess another type.
http::Response text_error(int status, std::string_view line);
/// invalid_argument 400, not_found 404, conflict 409, too_large 413, all else 500.
http::Response text_error(const Error& error);
http::Response method_not_allowed(std::string_view allowed);

/// Up to so many bytes of the request's body; what follows is left.
Awaitable<Result<std::string>> read_cut(http::BodyReader& body, std::size_t limit);

}  // namespace opensandbox::egress
