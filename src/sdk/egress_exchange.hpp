#pragma once

#include "opensandbox/connection.hpp"
#include "sdk/transport.hpp"

#include <string>

namespace opensandbox::sdk {

/// One request to the egress control of a sandbox, at its own address. Fails with `bad_gateway`
/// when nothing answers there.
Awaitable<Result<Reply>> exchange_egress(Connection connection, std::string id, Call call);

}  // namespace opensandbox::sdk
