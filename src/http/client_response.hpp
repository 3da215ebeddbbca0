#pragma once

#include "http/client_connection.hpp"
#include "http/client_pool.hpp"

#include <memory>
#include <string>

namespace opensandbox::http {

/// A response whose head has arrived over `connection`. The connection goes back to the pool under
/// `origin` once the body was read to its end, if `keep` allows it. `sender` is null or the request
/// body still on its way.
std::unique_ptr<ClientResponse> make_client_response(std::shared_ptr<ClientPool> pool,
                                                     std::string origin,
                                                     std::unique_ptr<ClientConnection> connection,
                                                     ParsedResponse response, Framing framing,
                                                     bool keep, std::shared_ptr<BodySender> sender);

}  // namespace opensandbox::http
