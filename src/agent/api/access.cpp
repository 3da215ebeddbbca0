#include "agent/api/access.hpp"

#include "base/identifier.hpp"
#include "http/access_path.hpp"

namespace opensandbox::agent {

bool admit(const std::string& token, http::RequestHead& request) {
    std::string given = http::take_access_path(request.target);
    if (token.empty()) return true;
    if (given.empty()) given = request.fields.get(http::kAccessTokenField).value_or("");
    return equal_constant_time(given, token);
}

}  // namespace opensandbox::agent
