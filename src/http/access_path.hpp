#pragma once

#include <string>
#include <string_view>

/// A token in a path, for published clients that are older than the headers of endpoints: what
/// they put behind the address of an endpoint follows the token.
namespace opensandbox::http {

/// "/.access/<token>". The token must be of URL-safe characters.
std::string access_path(std::string_view token);

/// Takes "/.access/<token>" off the front of a target and returns the token; empty, with the
/// target as it was, when there is none.
std::string take_access_path(std::string& target);

}  // namespace opensandbox::http
