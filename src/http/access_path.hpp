#pragma once

#include <string>
#include <string_view>

/// How the token of a sandbox's agent comes with a request: in a header, or in the path, for
/// published clients that are older than the headers of endpoints: what they put behind the address
/// of an endpoint follows the token.
namespace opensandbox::http {

inline constexpr const char* kAccessTokenField = "X-EXECD-ACCESS-TOKEN";

/// "/.access/<token>". The token must be of URL-safe characters.
std::string access_path(std::string_view token);

/// Takes "/.access/<token>" off the front of a target and returns the token; empty, with the
/// target as it was, when there is none.
std::string take_access_path(std::string& target);

/// The path as a log may show it: *** in place of every token.
std::string without_access_tokens(std::string_view path);

}  // namespace opensandbox::http
