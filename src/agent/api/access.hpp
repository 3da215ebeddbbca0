#pragma once

#include "http/message.hpp"

#include <string>

namespace opensandbox::agent {

/// Whether the request carries the token (execd 1.2); an empty one admits everybody. The token
/// comes in X-EXECD-ACCESS-TOKEN, or, from clients that do not send what an endpoint asks for, as
/// the first part of the path, "/.access/<token>/…" (http/access_path.hpp), which is taken away.
bool admit(const std::string& token, http::RequestHead& request);

}  // namespace opensandbox::agent
