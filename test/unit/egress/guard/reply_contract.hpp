#pragma once

#include <string>
#include <string_view>

namespace opensandbox::egress::test {

/// Checks a whole HTTP/1.1 answer of the egress API (lines ended by \n or \r\n) against
/// specs/egress.yaml: what is wrong with it, empty when nothing is. Routes that the document does
/// not have must be answered 401, 404 or 405.
std::string breach_of_contract(std::string_view method, std::string_view target,
                               std::string_view answer);

}  // namespace opensandbox::egress::test
